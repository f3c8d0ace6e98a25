"""Keys, certificates and tokens of principals, and the server configuration that checks them."""
