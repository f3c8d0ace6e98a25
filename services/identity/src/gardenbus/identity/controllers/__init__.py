"""Controllers of signing requests, of bootstrap tokens, and of Secrets that ask for short-lived credentials."""
