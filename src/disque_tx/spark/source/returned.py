"""Jobs that a query gave back with NACK: the source must not acknowledge them with their batch.

Their IDs are written to a file in the checkpoint before the NACK. The source looks there before it
acknowledges a batch. After a day the files are removed; no batch takes that long.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Final
from uuid import uuid4

from pyarrow import fs

from disque_tx.spark.paths import opened, resolved

_FOLDER: Final = "disque/returned"
_KEPT_S: Final = 86_400.0


class Returned:
    """The files of one query. ``checkpoint``: its checkpointLocation. ``wall_s``: the time of
    day."""

    def __init__(self, checkpoint: str, wall_s: Callable[[], float] = time.time) -> None:
        # Spark and Arrow name the same store differently.
        self._system, root = opened(resolved(checkpoint.replace("s3a://", "s3://", 1)))
        self._folder = f"{root}/{_FOLDER}"
        self._wall_s = wall_s
        self._known: dict[str, frozenset[str]] = {}

    def add(self, ids: Iterable[str]) -> None:
        """Do not acknowledge these jobs."""
        self._system.create_dir(self._folder, recursive=True)
        with self._system.open_output_stream(f"{self._folder}/{uuid4().hex}") as out:
            out.write(json.dumps(list(ids)).encode())

    def ids(self) -> set[str]:
        """All that were given back during the last day."""
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        before = self._known
        self._known = {}
        for info in self._system.get_file_info(selector):
            if info.mtime_ns / 1e9 < self._wall_s() - _KEPT_S:
                self._system.delete_file(info.path)
            else:
                self._known[info.path] = before.get(info.path) or self._read(info.path)
        return {job_id for ids in self._known.values() for job_id in ids}

    def _read(self, path: str) -> frozenset[str]:
        with self._system.open_input_stream(path) as stored:
            return frozenset(json.loads(stored.read()))
