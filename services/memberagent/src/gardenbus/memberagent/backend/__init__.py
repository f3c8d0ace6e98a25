"""Backends that hold the manifests of Works: the port, and the local backend."""
