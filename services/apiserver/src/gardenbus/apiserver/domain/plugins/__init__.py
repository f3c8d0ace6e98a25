"""Admission plug-ins, one a file, and the chain that runs them. Pure: what a plug-in must know of others it queries.

A rule that needs nothing but the manifest belongs to the validators, a default that follows from it to `defaults`.
"""
