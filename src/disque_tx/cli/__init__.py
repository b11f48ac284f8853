"""The programs: disque-server, disque, disque-check-aof."""
