"""``disque-pipeline convert``: tables of the layout before Delta, whose commits were files of JSON
in ``TABLE/_commits``.

No event is written again: the files that belong to the former table become those of a Delta table
in the same folder, by one commit. If that is killed before, running it again does the same. The
former table can be read by its version as before, until it is removed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import attrs
from pyarrow import fs
from pyspark.sql import SparkSession

from disque_tx.spark.errors import BadTable
from disque_tx.spark.paths import files_below, opened, resolved
from disque_tx.spark.pipeline.tables.counting import counted_runs
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.events import EVENTS, EventTableLog, event_schema, is_former
from disque_tx.spark.pipeline.tables.footers import written
from disque_tx.spark.pipeline.tables.runs import Runs
from disque_tx.spark.pipeline.tables.table import reading

_CONVERT: Final = "convert"
_VERSIONS: Final = (1, 2)
_COMMIT: Final = re.compile(r"(?:checkpoint-)?(\d{12})\.json")
#: Files that commits name are moved and removed, and a commit may have come from anywhere.
_FILE: Final = re.compile(r"dt=[^/]+/[^/]+\.parquet")
_STAGED: Final = re.compile(r"[0-9a-f]*")
_PARTS: Final = ("_commits", "_staging", "_disque-table")


@attrs.frozen
class Converted:
    """``events`` in ``files``, as many in both tables. ``removed``: whether the former table is
    gone."""

    events: int
    files: int
    removed: bool


@attrs.frozen
class _Former:
    """What the commits of a table say. ``events``: how many they added. ``replaced``: files that
    were merged."""

    files: list[str]
    replaced: list[str]
    events: int


def convert(spark: SparkSession, path: str, remove: bool = False) -> Converted:
    """Make a Delta table of one of the former layout.

    ``remove``: remove the former one afterwards, and the files that only belonged to it.

    :raises BadTable: when there is none, when it is damaged, or when the counts differ.
    """
    root = resolved(path)
    if not is_former(root):
        raise BadTable(f"{root} is not a table of an earlier version: there is nothing to convert.")
    former = _read(root)
    if not DeltaLog.exists(root):
        DeltaLog.create(root, event_schema(), EVENTS, ("dt",))
    table = EventTableLog(root)
    if table.log.last(_CONVERT) < 0:
        files = _footers(root, former)
        events = reading(spark, table.log.schema, root, [file.path for file in files])
        runs = Runs(counted_runs(events))
        if not former.events == runs.events == sum(file.rows for file in files):
            raise BadTable(
                f"The commits of {root} added {former.events} events; its files have"
                f" {sum(file.rows for file in files)}, of which {runs.events} are different."
                " Nothing was changed. Look for files that were modified, or ingest again."
            )
        table.log.commit(files, {_CONVERT: 1}, {"runs": runs.to_notes(), "files": {}})
    if remove:
        _remove(root, former, {file.path for file in table.log.files()})
    return Converted(former.events, len(former.files), remove)


def _read(root: str) -> _Former:
    system, place = opened(f"{root}/_commits")
    found = []
    for name, _ in files_below(f"{root}/_commits"):
        if match := _COMMIT.fullmatch(name):
            with system.open_input_stream(f"{place}/{name}") as stream:
                found.append(
                    (int(match[1]), name, _parsed(f"{root}/_commits/{name}", stream.read()))
                )
    newest = max((at for at, name, _ in found if name.startswith("checkpoint")), default=-1)
    whole = [each for each in found if each[0] == newest and each[1].startswith("checkpoint")]
    later = sorted(each for each in found if each[0] > newest)
    commits = [commit for _, _, commit in (*whole, *later)]
    if [commit["number"] for commit in commits] != list(
        range(max(newest, 0), max(newest, 0) + len(commits))
    ):
        raise BadTable(f"A commit of {root} is missing. Restore it from a copy.")
    live: dict[str, None] = {}
    replaced: list[str] = []
    for commit in commits:
        _move_into_place(root, commit)
        for name in commit.get("replaces", ()):
            live.pop(name, None)
            replaced.append(name)
        replaced += [name for name, _ in commit.get("replaced", ())]
        live.update(dict.fromkeys(commit["files"]))
    events = sum(span["events"] for commit in commits for span in commit["spans"])
    return _Former(list(live), replaced, events)


def _parsed(path: str, text: bytes) -> dict[str, Any]:
    try:
        commit: dict[str, Any] = json.loads(text)
        if commit["version"] not in _VERSIONS:
            raise ValueError(f"version {commit['version']} is not known")
        names = [*commit["files"], *commit.get("replaces", ())]
        names += [name for name, _ in commit.get("replaced", ())]
        if not all(map(_FILE.fullmatch, names)) or not _STAGED.fullmatch(commit["staged"]):
            raise ValueError("it names what is not a file of a table")
    except (ValueError, TypeError, KeyError) as error:
        raise BadTable(f"{path} is damaged: {error}. Restore it from a copy.") from error
    return commit


def _move_into_place(root: str, commit: dict[str, Any]) -> None:
    """Do what a process that was killed after its commit did not: its files are still staged."""
    if not commit["staged"]:
        return
    system, place = opened(root)
    for name in commit["files"]:
        source = f"{place}/_staging/{commit['staged']}/{name}"
        if system.get_file_info(source).type == fs.FileType.File:
            system.create_dir(f"{place}/{name.partition('/')[0]}", recursive=True)
            system.move(source, f"{place}/{name}")


def _footers(root: str, former: _Former) -> list[DataFile]:
    days = sorted({name.partition("/")[0] for name in former.files})
    found = {file.path: file for day in days for file in written(root, day)}
    absent = sorted(set(former.files) - set(found))
    if absent:
        raise BadTable(f"{root}/{absent[0]} is missing, or empty. Restore it from a copy.")
    return [found[name] for name in former.files]


def _remove(root: str, former: _Former, kept: set[str]) -> None:
    system, place = opened(root)
    for name in set(former.replaced) - kept:
        if system.get_file_info(f"{place}/{name}").type == fs.FileType.File:
            system.delete_file(f"{place}/{name}")
    for part in reversed(_PARTS):
        kind = system.get_file_info(f"{place}/{part}").type
        if kind == fs.FileType.Directory:
            system.delete_dir(f"{place}/{part}")
        elif kind == fs.FileType.File:
            system.delete_file(f"{place}/{part}")
