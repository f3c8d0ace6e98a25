"""What the scheduler is told: its configuration file. How it decides stands in gardenbus.scheduling."""
