"""The documentation as a site, which ``make site`` built; not part of ``make test``."""
