"""Enqueuer, state collector and apiserver client: the reconciler's access to the landscape."""
