"""What options of ``disque`` do instead of a command: figures, latency, mass insertion."""
