"""Extension objects of a seed: Gardener's contract between a gardenlet and the extensions that act on them. Pure."""
