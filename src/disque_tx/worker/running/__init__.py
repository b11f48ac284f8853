"""Handlers run: in threads, in processes, with a watchdog."""
