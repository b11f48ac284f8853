"""Tests of what streams do with their batches."""
