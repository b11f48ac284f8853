"""Nodes find each other: names and files become addresses of nodes."""
