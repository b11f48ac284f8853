"""Copies logs into tables, and tables into queues."""
