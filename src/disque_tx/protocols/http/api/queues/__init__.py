"""Routes of queues, policies and schedules."""
