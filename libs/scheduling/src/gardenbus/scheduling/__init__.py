"""Which seed a shoot gets, and why not: values in, one value out. No I/O, clock or randomness in here.

`current` alone waits: it keeps the landscape that decisions are made on up to date.
"""
