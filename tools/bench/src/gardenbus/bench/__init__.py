"""`gardenbus bench`: how fast it is, beside how fast it could be with the same servers, functions and batches.

Every scenario runs on servers of its own, with services as processes of their own, and measures a *bare pipe* in the
same run: the same messages through the same NATS, Redis and functions, with nothing decided in between.
"""
