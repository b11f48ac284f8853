"""Disque beside the job queues that people would take instead, each on the same work."""
