"""Jobs that come back: retries with backoff, dead letters, and moves to other queues."""
