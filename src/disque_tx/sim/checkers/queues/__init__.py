"""Checkers of queues: order, pauses, patterns and limits, memory, clients that wait."""
