"""Controllers of signing requests, of bootstrap tokens, and of Secrets that request short-lived credentials."""
