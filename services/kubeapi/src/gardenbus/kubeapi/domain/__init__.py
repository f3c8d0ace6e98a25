"""Pure: what the Kubernetes protocol is made of."""
