"""The resource manager of a seed: has the objects of ManagedResources be there, on the seed's API and on its shoots'.

Belongs here: requests to these API servers, watches and queues. Rules belong into `domain.managed_resources`.
"""
