"""Nodes that leave the cluster empty."""
