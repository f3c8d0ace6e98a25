"""The shell around the decisions: reads, decides, writes with what was read, and acknowledges."""
