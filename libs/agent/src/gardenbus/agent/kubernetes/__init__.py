"""A thin client of the Kubernetes API: documents in, documents out, on aiohttp.

Belongs here: requests, their errors, server-side apply. What is done with the objects belongs to the services.
"""
