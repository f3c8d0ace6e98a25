"""An autoscaler in virtual time: the service's own decisions on an imagined set of seeds, for tests and for people.

What comes and goes (`load`), how a set follows (`world`), what it cost and what it would have cost somebody who knew
everything in advance (`hindsight`). Nothing here is used by the service.
"""
