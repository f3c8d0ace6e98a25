"""Detects gardenlets that stopped posting: GardenletReady turns Unknown, then the conditions of their shoots do.

Heartbeats are assessed here. Their content belongs to the gardenlet, the consequences of an unready seed to the
scheduler. What runs on a Seed that the store has lost is its condition ObjectsKnown.
"""
