"""What happened to the jobs of busy queues over time: counts, waits, and their history."""
