"""A shop whose tasks Django-Q2 runs, on Disque. ``python examples/run.py django_q2`` shows it."""
