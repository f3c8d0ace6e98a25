"""Leases, the probe Lease and gauges: everything that follows events without being a reconciler."""
