"""The shell: listen to Leases, look at the Seeds, write what was decided."""
