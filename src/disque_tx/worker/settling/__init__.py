"""What becomes of a job: acknowledged, retried, a dead letter; and its lease meanwhile."""
