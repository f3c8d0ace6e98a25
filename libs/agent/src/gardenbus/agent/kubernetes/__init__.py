"""A thin client of the Kubernetes API: documents in, documents out, on aiohttp.

Belongs here: kubeconfigs, requests, their errors, server-side apply, discovery of kinds, watches. What is done with the
objects belongs to the services.
"""
