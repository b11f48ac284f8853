"""What the daemon and the simulator do alike: turns, the log, links, periodic work."""
