"""Logs into tables, and tables into queues."""
