"""``disque import``: jobs of other queues become jobs of Disque."""
