"""A mutation tester: plants small defects, one at a time, and reports those that no test
notices."""
