"""The IDs of batches, kept in the checkpoint of the query, so that an offset is small.

Spark stores an offset twice, and shows three of them in each progress. So an offset names a file
with the IDs, and its digest. The file is written before Spark gets to know the offset. A file is
removed when the batch behind it has begun, as no earlier batch runs again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from disque_tx.client.addresses import Address, address
from disque_tx.client.errors import BadAddress
from disque_tx.spark.checkpoint import Checkpoint
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.source.offsets import Offset, is_job_id

#: The folder in the checkpoint; Spark ignores it.
_FOLDER: Final = "disque"
_FILE_CHARACTERS_MAX: Final = 200
#: The batch that runs, and the one before it.
_CACHED: Final = 2


class BatchLog:
    """The files of one query. ``checkpoint``: its checkpointLocation."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = Checkpoint(checkpoint)
        self._system, self._root = self._checkpoint.system, self._checkpoint.root
        self._cache: OrderedDict[str, Offset] = OrderedDict()

    def write(self, offset: Offset, before: Mapping[str, Any], size: int = 0) -> dict[str, Any]:
        """Keep the IDs of a batch; returns what Spark is to store. ``before``: the same of the
        batch before it, behind which the files of earlier ones are removed. ``size``: bytes of the
        bodies, which belong to it because the division into tasks follows from them."""
        # A long text is written in a tenth of the time of many short ones. IDs have no spaces.
        texts = {str(node): " ".join(ids) for node, ids in offset.jobs.items()}
        content = json.dumps(texts).encode()
        digest = hashlib.sha256(content).hexdigest()
        folder = os.path.dirname(_file(before) or f"{_FOLDER}/{secrets.token_hex(8)}/0")
        file = f"{folder}/{offset.seq}-{digest[:16]}"
        self._system.create_dir(f"{self._root}/{folder}", recursive=True)
        with self._system.open_output_stream(f"{self._root}/{file}") as out:
            out.write(content)
        self._remove(folder, {file, _file(before)})
        self._remember(file, offset)
        return {
            "seq": offset.seq,
            "jobs": len(offset),
            "bytes": size,
            "file": file,
            "sha256": digest,
        }

    def read(self, kept: Any) -> Offset:
        """The batch of an offset that Spark stored. Those of earlier versions contain the IDs.

        :raises JobsLost: when it is not an offset of this format, or its file is not there or is
            not the one that was written.
        """
        try:
            seq, jobs = kept["seq"], kept.get("jobs", {})
            if type(seq) is not int or seq < 0:
                raise _foreign()
            file = _file(kept)
            if file is None:
                return Offset(seq, _jobs(jobs))
            if file not in self._cache:
                self._remember(file, Offset(seq, _jobs(self._loaded(file, kept["sha256"]))))
            return self._cache[file]
        except (TypeError, KeyError, AttributeError, ValueError, BadAddress):
            raise _foreign() from None

    def is_committed(self, kept: Mapping[str, Any]) -> bool:
        """Whether Spark has committed the batch with this offset, as its last one."""
        file, last = _file(kept), self._checkpoint.committed()
        # The name is in no other offset.
        return file is not None and last is not None and file.encode() in last.offsets

    def _loaded(self, file: str, digest: str) -> Any:
        try:
            with self._system.open_input_stream(f"{self._root}/{file}") as stored:
                content = stored.read()
        except OSError as error:
            raise JobsLost(
                f"The IDs of the last batch of this query cannot be read: {error}. The option"
                " checkpointLocation must be the same for readStream and writeStream, and always."
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise JobsLost(f"The file {file} in the checkpoint of this query was damaged.")
        return json.loads(content)

    def _remember(self, file: str, offset: Offset) -> None:
        self._cache[file] = offset
        while len(self._cache) > _CACHED:
            self._cache.popitem(last=False)

    def _remove(self, folder: str, but: set[str | None]) -> None:
        for name in self._checkpoint.names(folder):
            if f"{folder}/{name}" not in but:
                self._system.delete_file(f"{self._root}/{folder}/{name}")


def _file(kept: Mapping[str, Any]) -> str | None:
    """The file that an offset names."""
    file = kept.get("file")
    if file is None:
        return None
    parts = file.split("/")
    if len(parts) != 3 or parts[0] != _FOLDER or ".." in parts or len(file) > _FILE_CHARACTERS_MAX:
        raise _foreign()
    return str(file)


def _jobs(kept: Mapping[str, Any]) -> dict[Address, tuple[str, ...]]:
    """Node → IDs, which earlier versions wrote as an array."""
    jobs = {
        address(node): tuple(ids.split(" ") if isinstance(ids, str) else ids)
        for node, ids in kept.items()
    }
    if not all(is_job_id(job_id) for ids in jobs.values() for job_id in ids):
        raise _foreign()
    return jobs


def _foreign() -> JobsLost:
    return JobsLost(
        "The checkpoint of this query was not written by the format disque: its offset is not"
        " understood. Use the checkpointLocation of this query, or a new one."
    )
