"""Queues: what waits in them, who waits for them, and what limits or pauses them."""
