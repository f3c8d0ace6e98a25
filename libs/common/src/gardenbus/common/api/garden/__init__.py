"""Kinds of Gardener: views of Shoots, Seeds, profiles and others, rules that services share, rows. Pure."""
