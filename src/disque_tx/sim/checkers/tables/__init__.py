"""Checkers of what all nodes share: keys, policies, schedules."""
