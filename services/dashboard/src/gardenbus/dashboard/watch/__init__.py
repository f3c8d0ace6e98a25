"""Cache of the landscape, kept current from the bus."""
