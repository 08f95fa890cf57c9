"""The loop that trains every method, and what surrounds a step of it."""
