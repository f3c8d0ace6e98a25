"""HTTPS server: routing, encodings, limits."""
