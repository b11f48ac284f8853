"""GETJOB MATCH: jobs of all queues whose names match."""
