"""What an agent decides: pure."""
