"""A node that leaves gives its jobs to other nodes, until it holds none."""
