"""The cluster bus on a real network."""
