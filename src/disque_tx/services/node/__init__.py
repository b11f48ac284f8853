"""The node as a service: its start and end, its log, its control, periodic work."""
