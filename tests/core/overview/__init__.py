"""Tests of looking at queues, emptying them, and waiting for the end of jobs."""
