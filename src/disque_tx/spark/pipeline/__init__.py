"""``disque-pipeline``: what happened to jobs, from the event logs of many nodes, on Spark.

One module per command. :mod:`.ingest` makes a table of event logs, :mod:`.lifecycle` says what
became of each job and each queue, :mod:`.audit` says what should not have happened. Everything is
Spark's DataFrames: rows stay where they are computed, and only handfuls of sums come back.
"""
