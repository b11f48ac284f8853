"""What Spark wrote to the checkpoint of a query: its batches, planned and committed."""

from __future__ import annotations

import json
from typing import Final

import attrs
from pyarrow import fs

from disque_tx.spark.paths import opened, resolved

_PLANNED: Final = "offsets"
_COMMITTED: Final = "commits"
_QUERY: Final = "metadata"


@attrs.frozen
class Batch:
    """A batch in Spark's log. ``offsets``: the file that names the end of the batch in each source
    of the query, whatever Spark writes around that. ``committed``: whether it is done."""

    offsets: bytes
    committed: bool


class Checkpoint:
    """The checkpoint at ``location``, on a disk or in an object store. Spark and Arrow name the
    same store differently."""

    def __init__(self, location: str) -> None:
        self.system, self.root = opened(resolved(location))

    def infos(self, folder: str) -> list[fs.FileInfo]:
        """The files in one of its folders, which need not be there."""
        selector = fs.FileSelector(f"{self.root}/{folder}", allow_not_found=True)
        return list(self.system.get_file_info(selector))

    def names(self, folder: str) -> list[str]:
        """The names of the files in one of its folders."""
        return [info.base_name for info in self.infos(folder)]

    def planned(self) -> Batch | None:
        """The last batch in Spark's log, into which a batch is written before it runs."""
        last = self._last(_PLANNED)
        return None if last is None else Batch(self._offsets(last), self._last(_COMMITTED) == last)

    def committed(self) -> Batch | None:
        """The last batch that Spark has committed."""
        last = self._last(_COMMITTED)
        return None if last is None else Batch(self._offsets(last), True)

    def query_id(self) -> str | None:
        """The ID that Spark gave to the query, which is the same after a restart; ``None`` if it
        has not yet, or cannot be read."""
        try:
            with self.system.open_input_stream(f"{self.root}/{_QUERY}") as stored:
                found = json.loads(stored.read())
            return str(found["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _last(self, folder: str) -> int | None:
        return max((int(name) for name in self.names(folder) if name.isdigit()), default=None)

    def _offsets(self, number: int) -> bytes:
        with self.system.open_input_stream(f"{self.root}/{_PLANNED}/{number}") as stored:
            return bytes(stored.read())
