"""The commands, each a thin shell: read the options, request from the landscape, print."""
