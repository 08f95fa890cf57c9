"""Frameworks whose loops train a manifold; each is imported only when it is used."""
