"""Speed and memory of the daemon, beside redis-server or beside another version of itself."""
