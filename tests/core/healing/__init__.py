"""Tests of copies that are made again."""
