"""What `doctor` examines: each module looks at one part of a landscape, and judges what it found by pure functions."""
