"""Views of placements, member clusters and the objects between them."""
