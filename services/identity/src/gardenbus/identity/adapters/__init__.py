"""Adapters to the files of the authority that signs, and to the servers' system account."""
