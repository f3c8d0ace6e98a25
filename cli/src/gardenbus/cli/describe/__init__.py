"""Related objects that `describe` shows; the command itself is in `commands`."""
