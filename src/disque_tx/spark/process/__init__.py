"""This process while it works for Spark: its threads, signals and memory."""
