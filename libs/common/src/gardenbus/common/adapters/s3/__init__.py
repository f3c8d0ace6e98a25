"""S3: the only importer of obstore."""
