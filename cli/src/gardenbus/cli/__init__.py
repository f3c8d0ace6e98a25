"""The gardenbus command."""
