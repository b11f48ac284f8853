"""Queues as tables and as streams."""
