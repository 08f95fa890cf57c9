"""Every table and figure of the paper: a registry row each, one command for all of them."""
