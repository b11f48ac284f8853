"""Tests of schedules and their occurrences."""
