"""The embedded landscape: what `gardenbus up` starts, watches and stops.

Pure: `process_specs` (which processes), `picture` (what is shown), `convergence` (whether all is done). The others
touch processes and files. Nothing in here speaks to the landscape other than by `gardenbus.cli.client.api`.
"""
