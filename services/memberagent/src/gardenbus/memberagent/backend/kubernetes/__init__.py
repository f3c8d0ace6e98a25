"""Backend `kubernetes` of a member agent: a cluster is an API server, reached by a kubeconfig."""
