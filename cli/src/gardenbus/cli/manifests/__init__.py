"""Manifests."""
