"""Tests of jobs that come back: retries, dead letters, moves."""
