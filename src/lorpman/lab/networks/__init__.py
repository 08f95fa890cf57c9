"""The networks of the paper's problems, one file each."""
