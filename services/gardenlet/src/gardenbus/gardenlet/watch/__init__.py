"""Cache of one seed: its bindings, and what follows its shoots."""
