"""Tests of what is found to be wrong with a cluster."""
