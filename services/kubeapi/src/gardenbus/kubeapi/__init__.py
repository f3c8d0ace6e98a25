"""A Kubernetes API in front of the landscape: requests on the bus, and watches of announcements."""
