"""A mutation tester: small defects by a seed, one at a time, and which of them no test notices."""
