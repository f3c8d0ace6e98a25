"""A thin client of the Kubernetes API: documents in, documents out, on aiohttp.

Belongs here: requests, their errors, server-side apply. Kubeconfigs, discovery, watches and what is done with the
objects belong to the services.
"""
