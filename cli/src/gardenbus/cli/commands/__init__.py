"""The commands, each a thin shell: read the options, ask the landscape, print."""
