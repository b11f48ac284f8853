"""What the daemon and the simulator do alike: turns and their order, the log, links, periodic work."""
