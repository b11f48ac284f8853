"""The commands of ``disque-pipeline`` by DuckDB, in this process: for one machine, without Java.

The tables are the same, so that either engine may take over from the other at any time.
"""
