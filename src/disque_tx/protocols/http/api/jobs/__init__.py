"""Routes of jobs and dead letters."""
