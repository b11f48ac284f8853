"""Records of the event log, as bytes."""
