"""The files of a node: its log, its tables, what was queued and paused."""
