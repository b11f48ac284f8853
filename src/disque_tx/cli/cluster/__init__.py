"""``disque cluster``: makes clusters of nodes, shows their state, and finds problems."""
