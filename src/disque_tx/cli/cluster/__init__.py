"""``disque cluster``: nodes become a cluster, what they say, and what is wrong with it."""
