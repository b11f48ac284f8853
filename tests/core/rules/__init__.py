"""Tests of what the policy of a queue changes for its jobs."""
