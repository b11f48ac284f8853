"""Looking up the addresses of other nodes."""
