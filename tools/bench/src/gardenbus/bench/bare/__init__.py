"""The bare pipes: processes in the place of services that make the same calls to the servers, and decide nothing."""
