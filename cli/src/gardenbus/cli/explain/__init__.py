"""Text of `explain`, made of the scheduler's explanation. Pure."""
