"""Verbs that work, and verbs on workers."""
