"""Cache of fleet and placements, and what enqueues placements on changes."""
