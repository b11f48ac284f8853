"""Verbs that show, fetch, add or move the jobs of a queue."""
