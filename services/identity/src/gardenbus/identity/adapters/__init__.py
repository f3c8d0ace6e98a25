"""Adapters to the files of the authority that signs, to the auth callout, and to the servers' system account."""
