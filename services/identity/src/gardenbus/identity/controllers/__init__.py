"""Controllers of signing requests and bootstrap tokens, and of connections whose credentials were withdrawn."""
