"""Where the manifests of Works go."""
