"""The parent of a daemon's processes: starts them, and passes connections on."""
