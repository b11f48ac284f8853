"""A shop whose tasks are Django's, on Disque. ``python examples/run.py django`` shows it."""
