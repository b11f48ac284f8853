"""Tables that all nodes share: policies and schedules."""
