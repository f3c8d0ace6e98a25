"""Enqueuer, counter of pending shoots and scale client: the reconciler's access to the landscape."""
