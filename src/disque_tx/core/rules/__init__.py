"""What the policy of a queue changes for its jobs."""
