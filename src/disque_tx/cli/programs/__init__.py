"""The programs: disque-server, disque, disque-check-aof, disque-pipeline, and the demonstration."""
