"""Several processes as one daemon: a parent, and an ordinary node in each of its children."""
