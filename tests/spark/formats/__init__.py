"""Tests of the formats as Spark finds them."""
