"""What queues may be told: settings, policies, and which pattern applies to a queue."""
