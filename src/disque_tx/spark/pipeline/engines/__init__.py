"""Engines of the pipeline, and which of them runs a command."""
