"""PURE: who takes part in a landscape, and what each may do on the bus: one table for all that enforce it."""
