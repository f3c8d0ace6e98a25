"""Ways of an agent to its cluster and to the landscape."""
