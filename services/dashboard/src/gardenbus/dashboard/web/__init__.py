"""HTTP: the page's files, answers as JSON, the stream of changes, and what protects them."""
