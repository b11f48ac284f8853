"""One process of a daemon: what it reports, and what it asks the others."""
