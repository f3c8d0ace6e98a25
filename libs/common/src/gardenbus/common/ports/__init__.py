"""What the services need from the outside, as Protocols and the values that cross them. No logic."""
