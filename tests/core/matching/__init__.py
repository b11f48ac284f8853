"""Tests of disque_tx.core.matching."""
