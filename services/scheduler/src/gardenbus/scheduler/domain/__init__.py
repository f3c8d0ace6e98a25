"""Pure parts of the scheduler service; decisions themselves are in gardenbus.scheduling."""
