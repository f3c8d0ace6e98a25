"""What else could have been done, beside what is done: each means measured in turn with the one that it would replace.

    python -m gardenbus.cli.bench.alternatives [--quick] [names...]

One module for each choice; `spending` counts and compares, `contests` lists. Scenarios of the product itself are one
folder up: what is measured here is smaller than a service, and decides nothing.
"""
