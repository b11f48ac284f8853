"""``disque-pipeline``: what happened to jobs, from the event logs of many nodes, on Spark.

A package per family of commands. :mod:`.ingest` makes a table of event logs, :mod:`.lifecycle` says
what became of each job and each queue, and what should not have happened. Everything is
Spark's DataFrames: rows stay where they are computed, and only handfuls of sums come back.
"""
