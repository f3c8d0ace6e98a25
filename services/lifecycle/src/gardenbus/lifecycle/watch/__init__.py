"""Leases with the probe Lease, and gauges of the seeds."""
