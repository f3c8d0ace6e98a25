"""Conditions of `--for`, and the waiter that follows objects until they meet them."""
