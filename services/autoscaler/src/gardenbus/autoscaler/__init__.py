"""Changes how many seeds a set keeps, as shoots come and go."""
