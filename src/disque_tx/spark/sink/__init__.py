"""Tables and streams into queues."""
