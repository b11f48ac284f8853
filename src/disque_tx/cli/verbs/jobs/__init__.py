"""Verbs that look at, take, add or move the jobs of a queue."""
