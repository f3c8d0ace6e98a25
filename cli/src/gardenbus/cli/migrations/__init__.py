"""Migrations of control planes: drain of a seed, rebalancing, runner of moves, and their progress on a terminal."""
