"""Tables: entries found by ID or name, and looked through while they change."""
