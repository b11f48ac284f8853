"""Tests of the Spark sources, sinks and pipeline."""
