"""Changes the number of seeds in a set as shoots come and go."""
