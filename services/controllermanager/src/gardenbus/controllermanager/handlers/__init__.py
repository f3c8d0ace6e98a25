"""Projects by their namespaces, and contents of namespaces: the reconcilers' access to the landscape."""
