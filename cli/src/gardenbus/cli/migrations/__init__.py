"""Migrations of control planes: the drain of a seed, the runner of moves, and their progress on a terminal."""
