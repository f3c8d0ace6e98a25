"""Simulation of an autoscaler in virtual time: the service's own decisions on a modelled set of seeds.

The shoots' lifetimes (`workload`), the set (`simulator`), the costs (`report`) and their lower bound (`oracle`). The
service uses none of it.
"""
