"""Messages of the relay. Pure."""
