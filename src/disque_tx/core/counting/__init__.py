"""Counts, lists and flushes over the queues of one node or of many."""
