"""Tests of what all nodes have alike."""
