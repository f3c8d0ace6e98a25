"""What every process does the same way: settings, logging, health, metrics, start and stop."""
