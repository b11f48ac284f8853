"""Copies are made again when the nodes that held them are lost."""
