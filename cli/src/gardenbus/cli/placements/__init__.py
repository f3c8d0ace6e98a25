"""What the command line says of placements, member clusters and what lies between them."""
