"""Jobs and their IDs, as bytes."""
