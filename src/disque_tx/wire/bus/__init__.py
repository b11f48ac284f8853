"""Messages of the cluster bus, as bytes."""
