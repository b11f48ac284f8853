"""What was added to a Delta table since one of its versions, from the commits in its log.

Commits that merge files say so, and change nothing. A file that was merged since is still there
until ``vacuum``, and has the rows that its commit added.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog


class NotOnlyAdded(PipelineError):
    """A table changed in other ways than by new rows, for the reason in the text."""


def added_since(log: DeltaLog, version: int, skip_deletions: bool = False) -> list[str]:
    """The files whose rows were added after a version, by their paths below the table.

    ``skip_deletions``: go on where rows were deleted, which adds none, but writes the others of
    the same files again.

    :raises NotOnlyAdded: when rows were deleted, or commits or files are gone.
    """
    if version > log.version:
        raise NotOnlyAdded("the results are of a later version of the table")
    system, place = opened(log.root)
    names = [
        name
        for number in range(version + 1, log.version + 1)
        for name in _added(_commit(system, f"{place}/_delta_log/{number:020}.json"), skip_deletions)
    ]
    infos = system.get_file_info([f"{place}/{name}" for name in names])
    if any(info.type != fs.FileType.File for info in infos):
        raise NotOnlyAdded("files that were added since were merged, and removed by vacuum")
    return names


def _commit(system: fs.FileSystem, path: str) -> list[dict[str, Any]]:
    """The actions of a commit."""
    try:
        with system.open_input_stream(path) as stream:
            text = stream.readall().decode()
    except FileNotFoundError as error:
        raise NotOnlyAdded("the log of the table does not go back so far") from error
    return [json.loads(line) for line in text.splitlines()]


def _added(actions: list[dict[str, Any]], skip_deletions: bool) -> list[str]:
    if any(action.get("remove", {}).get("dataChange") for action in actions):
        if skip_deletions:
            return []
        raise NotOnlyAdded("events were deleted since")
    added = [action["add"] for action in actions if "add" in action]
    return [unquote(add["path"]) for add in added if add["dataChange"]]
