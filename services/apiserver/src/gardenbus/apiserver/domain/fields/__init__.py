"""The fields of understood kinds: which there are, of what type, and which of them nothing acts on.

Data and pure checks. Rules about values belong to `validation`, what is read to the typed views.
"""
