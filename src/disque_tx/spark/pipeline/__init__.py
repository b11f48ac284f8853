"""``disque-pipeline``: what happened to jobs, from the event logs of many nodes.

A package per group of commands. :mod:`.ingest` makes a table from event logs, :mod:`.lifecycle`
finds out what became of each job and each queue, and what should not have happened. Both are done
with Spark's DataFrames, where rows stay where they are computed, and only aggregates come back; or
by DuckDB in this process, with the same results: :mod:`.local`.
"""
