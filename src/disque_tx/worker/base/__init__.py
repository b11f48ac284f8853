"""What all parts of a worker need: the context of a job, errors, the status."""
