"""Keys and certificates of principals, and the server configuration that checks them."""
