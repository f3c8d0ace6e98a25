"""Checks of `doctor`: each module examines one part of a landscape, and assesses the findings by pure functions."""
