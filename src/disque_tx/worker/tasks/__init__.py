"""What handles jobs: tasks, their routes, their results."""
