"""Verbs on the server, and help."""
