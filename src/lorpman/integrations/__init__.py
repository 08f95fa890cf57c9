"""Other libraries whose loops train a manifold; each file is imported only when it is used."""
