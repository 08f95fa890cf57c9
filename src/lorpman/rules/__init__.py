"""Rules that are more than one scalar: they look at the gradients of the tasks."""
