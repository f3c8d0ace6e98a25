"""Output of commands: tables, printers of `-o`, live pictures, exit codes."""
