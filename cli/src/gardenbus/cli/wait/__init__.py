"""Wait."""
