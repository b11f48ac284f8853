"""Keys of jobs: a job once, however often it is added."""
