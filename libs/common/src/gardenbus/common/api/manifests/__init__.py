"""Parsers of manifests in JSON and YAML, strict about what a store of record must not take. Pure."""
