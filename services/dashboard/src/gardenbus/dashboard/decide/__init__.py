"""PURE: what the page is shown of manifests, which rows are asked for, and what is kept from everybody."""
