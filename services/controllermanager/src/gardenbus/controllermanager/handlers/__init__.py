"""Definition of loops, and their access to the landscape: projects by namespaces, bindings, contents of namespaces."""
