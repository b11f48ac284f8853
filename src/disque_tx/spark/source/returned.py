"""Jobs that are not acknowledged with their batch: a query gave them back with NACK, or they were
left out because their node could not be reached.

Their IDs are written to a file in the checkpoint, before a NACK, with the batch that they were in,
which is the last one that Spark planned. The source looks there before it acknowledges that batch,
and when it runs again; in a later batch the same job is one like any other. After a day the files
are removed; no batch takes that long.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

import attrs

from disque_tx.spark.checkpoint import Checkpoint

_FOLDER: Final = "disque/returned"
#: How an offset names its file, whatever Spark writes around it.
_BATCH: Final = re.compile(rb"disque/[0-9a-f]+/[0-9]+-[0-9a-f]+")
_KEPT_S: Final = 86_400.0


@attrs.frozen
class _Some:
    """``batches``: the files of the offsets of that time, one for each source of the query."""

    batches: frozenset[str]
    ids: frozenset[str]


class Returned:
    """The files of one query. ``checkpoint``: its checkpointLocation. ``wall_s``: the time of
    day."""

    def __init__(self, checkpoint: str, wall_s: Callable[[], float] = time.time) -> None:
        self._checkpoint = Checkpoint(checkpoint)
        self._system = self._checkpoint.system
        self._folder = f"{self._checkpoint.root}/{_FOLDER}"
        self._wall_s = wall_s
        self._known: dict[str, _Some] = {}

    def add(self, ids: Iterable[str]) -> None:
        """Do not acknowledge these jobs with the batch that runs."""
        kept = {"batches": self._running(), "ids": list(ids)}
        self._system.create_dir(self._folder, recursive=True)
        with self._system.open_output_stream(f"{self._folder}/{uuid4().hex}") as out:
            out.write(json.dumps(kept).encode())

    def ids(self, offset: Mapping[str, Any]) -> set[str]:
        """Return the jobs of the batch with this offset that were given back."""
        before = self._known
        self._known = {}
        for info in self._checkpoint.infos(_FOLDER):
            if info.mtime_ns / 1e9 < self._wall_s() - _KEPT_S:
                self._system.delete_file(info.path)
            else:
                self._known[info.path] = before.get(info.path) or self._read(info.path)
        batch = offset.get("file")
        return {i for some in self._known.values() if batch in some.batches for i in some.ids}

    def _running(self) -> list[str]:
        """The names of the last batch in the log of Spark, which is written before it runs."""
        last = self._checkpoint.planned()
        return [] if last is None else [name.decode() for name in _BATCH.findall(last.offsets)]

    def _read(self, path: str) -> _Some:
        with self._system.open_input_stream(path) as stored:
            kept = json.loads(stored.read())
        return _Some(frozenset(kept["batches"]), frozenset(kept["ids"]))
