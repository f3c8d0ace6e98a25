"""Client of a landscape: its address, requests on `garden.api.>`, watches and streams, and a cache of its objects."""
