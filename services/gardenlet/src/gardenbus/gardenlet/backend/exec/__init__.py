"""Backend `exec`: the steps of a shoot are commands of the operator. Gardenbus brings no such command."""
