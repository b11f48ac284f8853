"""The verbs: words of ``disque`` that are not commands of the server."""
