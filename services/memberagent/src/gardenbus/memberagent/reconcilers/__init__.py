"""What an agent does: listens, keeps its cluster, applies Works, reports."""
