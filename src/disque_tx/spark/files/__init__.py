"""The files of nodes as tables: append only files, and event logs."""
