"""Simulation of whole landscapes of manifests: scheduling, placements, autoscaling, and the difference of changes.

Pure, but for the plots. The decisions are those of the libraries that the services use.
"""
