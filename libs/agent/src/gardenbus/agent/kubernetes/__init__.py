"""A thin client of the Kubernetes API: documents in, documents out, on aiohttp.

Belongs here: requests and their errors, kubeconfigs and connections, discovery, watches. Decisions about the objects
belong to the services.
"""
