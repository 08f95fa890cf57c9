"""Datasets, one file each: original files in, splits of tensors out."""
