"""Commands on the shared tables: policies and schedules."""
