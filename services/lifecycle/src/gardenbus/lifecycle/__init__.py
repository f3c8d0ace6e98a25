"""Notices gardenlets that stopped posting: GardenletReady turns Unknown, then what is known of their shoots does.

Here belongs whatever judges heartbeats. What a heartbeat is made of belongs to the gardenlet; what follows from an
unready seed belongs to the scheduler.
"""
