"""In-memory cache of the landscape, kept current from the bus."""
