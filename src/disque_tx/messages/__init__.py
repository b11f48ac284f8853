"""What travels: records of jobs, nodes, tables and keys, messages of the bus, events, replies."""
