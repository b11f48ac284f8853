"""Tests of the protocols that come with the package."""
