"""Where a run takes place: its shape, its record, its workload."""
