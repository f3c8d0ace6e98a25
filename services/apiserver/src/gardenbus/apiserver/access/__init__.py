"""Access to the API, and turns at it: authorizer, audit log, users of the server's configuration, slots."""
