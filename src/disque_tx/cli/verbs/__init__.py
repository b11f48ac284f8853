"""The words of ``disque`` that are no commands of the server."""
