"""Who may do what, in which turn: authorizer, audit log, users of the server's configuration, slots."""
