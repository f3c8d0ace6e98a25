"""Extensions of a seed with a Kubernetes API, over any maker: they act on objects that the gardenlet writes there."""
