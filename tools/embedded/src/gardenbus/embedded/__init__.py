"""The embedded landscape: what `gardenbus up` starts, watches and stops.

Pure: `plan` (which processes), `picture` (what is shown), `settled`. The others touch processes and files. Nothing in
here speaks to the landscape other than by `gardenbus.cli.client.api`.
"""
