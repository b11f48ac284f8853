"""The event log: what happens to jobs, in files."""
