"""The machine: files, logs, the system."""
