"""What shoots are built on. The port, and the local backend, which keeps everything in a directory."""
