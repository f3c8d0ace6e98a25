"""Library of agents: what gardenlet and member agent share, a process that hosts many agents on one connection.

Belongs here: host, followers, work loops, report publisher, file handling of local backends, settings. Rules of shoots
and Works belong to the services; `domain` is pure and may be used by the client.
"""
