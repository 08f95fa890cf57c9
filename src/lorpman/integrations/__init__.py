"""Other libraries' ways to train and to serve; each file is imported only when it is used."""
