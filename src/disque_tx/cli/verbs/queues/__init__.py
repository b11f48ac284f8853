"""Verbs on queues, policies and schedules."""
