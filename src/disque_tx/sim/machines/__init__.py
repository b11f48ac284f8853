"""Simulated machines, and the processes that run on them."""
