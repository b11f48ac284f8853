"""Jobs that recur: schedules, and when their occurrences are made."""
