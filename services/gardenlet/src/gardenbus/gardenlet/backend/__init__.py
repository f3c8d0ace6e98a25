"""Backends that shoots run on: the port, and the local backend, which keeps everything in a directory."""
