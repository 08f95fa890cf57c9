"""Methods by name: each row says which manifold and which rule. ``registry.py`` has them all."""
