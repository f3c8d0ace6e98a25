"""Garden."""
