"""Process runtime: settings, logging, health, metrics, start and stop."""
