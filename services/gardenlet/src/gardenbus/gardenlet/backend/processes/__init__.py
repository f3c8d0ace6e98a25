"""The backend `processes`: each shoot's control plane as processes of the gardenlet's machine."""
