"""``disque-pipeline``: what happened to jobs, from the event logs of many nodes, on Spark.

A package per group of commands. :mod:`.ingest` makes a table from event logs, :mod:`.lifecycle`
finds out what became of each job and each queue, and what should not have happened. Everything is
done with Spark's DataFrames: rows stay where they are computed, and only aggregates come back.
"""
