"""Daemons of several processes."""
