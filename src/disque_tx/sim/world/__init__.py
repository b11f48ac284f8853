"""The simulated world: time, network, disks."""
