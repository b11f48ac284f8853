"""Tests of the documentation as a site, built by ``make site``; not part of ``make test``."""
