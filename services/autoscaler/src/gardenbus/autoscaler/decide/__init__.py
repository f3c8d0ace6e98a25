"""What an autoscaler decides, as functions of values: how many seeds a set shall have, and what is said about it."""
