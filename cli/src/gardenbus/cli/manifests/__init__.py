"""Manifests from files and folders, and their patches, differences and revisions. No request is made here."""
