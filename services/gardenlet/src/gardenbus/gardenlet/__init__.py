"""The gardenlet: registers Seeds, renews their Leases, runs operations on shoots, and reports. Uses the bus alone.

Neither reads nor writes the store, and makes no scheduling decision.
"""
