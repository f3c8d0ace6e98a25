"""The member agent: heartbeats and properties of member clusters, and the Works addressed to them."""
