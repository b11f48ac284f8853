"""Queries for the figures of a report, each kept with its name so that the page can show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from disque_tx.spark.pipeline.local.database import Database

#: Column → value.
Row: TypeAlias = Mapping[str, Any]


@attrs.frozen
class Query:
    """``name``: of its place in the page. ``title``: what it finds. ``text``: SQL."""

    name: str
    title: str
    text: str


class Queries:
    """Runs queries of the views of a database. ``made``: all that were run, in order."""

    def __init__(self, rows: Database) -> None:
        self._rows = rows
        self.made: list[Query] = []

    def rows(self, name: str, title: str, text: str) -> list[Row]:
        """The rows of a query, of which there are few."""
        self.made.append(Query(name, title, text.strip()))
        return list(self._rows.records(text))

    def row(self, name: str, title: str, text: str) -> Row:
        """The only row of an aggregate."""
        (row,) = self.rows(name, title, text)
        return row
