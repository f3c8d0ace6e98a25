"""Scenarios, one a module: each measures one thing at several sizes. `catalogue` lists them all."""
