"""Several processes as one daemon."""
