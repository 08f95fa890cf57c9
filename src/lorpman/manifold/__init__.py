"""Manifolds: families of networks, one for every preference."""
