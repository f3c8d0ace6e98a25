"""Cache of the fleet and its placements, fed by an informer."""
