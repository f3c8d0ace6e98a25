"""Adapters on Redis; the function library in Lua is beside them."""
