"""Reconcilers of the apiserver."""
