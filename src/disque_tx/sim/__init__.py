"""A simulated world for the real node: network, disks, clocks and faults, all from one seed."""
