"""Folders of results: which of them may be replaced, and when the old one goes.

Whoever names the wrong folder with ``--overwrite`` must lose nothing. So:

1. A folder is replaced only if this pipeline made it. It contains the file :data:`MARKER`, which
   lists what was written; a folder that holds anything else is left alone.
2. A folder for results is never the same as one that is read, nor in it, nor around it.
3. The old results are removed after the new ones are complete and in their place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from disque_tx.spark.errors import OutputExists, OutputOverlaps
from disque_tx.spark.pipeline.storage import Storage

#: Spark ignores files whose names begin with ``_``.
MARKER: Final = "_disque-pipeline"
_FORMAT: Final = "disque-pipeline results"
_DEPTH_MAX: Final = 8


@contextmanager
def replacing(
    storage: Storage, into: str, inputs: Iterable[str], overwrite: bool
) -> Iterator[tuple[str, str]]:
    """The folder ``into`` with its scheme and without links, and one beside it to write to, which
    takes its place in the end. After an error neither has changed.

    ``inputs``: the files and folders that are read.

    :raises OutputOverlaps: when ``into`` and an input have anything in common.
    :raises OutputExists: when ``into`` exists, and is not to be replaced or holds something else.
    """
    target = resolved(storage, into)
    check_apart(storage, target, inputs)
    _check_replaceable(storage, target, overwrite)
    parent, _, name = target.rpartition("/")
    work = f"{parent}/_{name}-{uuid4().hex}"
    try:
        yield target, work
        names = sorted(_files(storage, work, work))
        storage.publish(f"{work}/{MARKER}", json.dumps({"format": _FORMAT, "files": names}) + "\n")
        _put(storage, work, target, overwrite)
    finally:
        storage.remove(work)


def _put(storage: Storage, work: str, target: str, overwrite: bool) -> None:
    """Put a complete folder in its place. What was there has the name of ``work`` with ``.old``
    meanwhile."""
    # Again, because writing may have taken hours.
    _check_replaceable(storage, target, overwrite)
    old = f"{work}.old" if storage.find(target) is not None else None
    if old:
        storage.move(target, old)
    try:
        storage.move(work, target)
    except BaseException:
        if old:
            storage.move(old, target)
        raise
    if old:
        storage.remove(old)


def check_apart(storage: Storage, target: str, inputs: Iterable[str]) -> None:
    """:raises OutputOverlaps: when a folder for results, as :func:`resolved` returns it, is the
    same as an input, in it, or around it."""
    for read in (resolved(storage, path) for path in inputs):
        if _is_within(target, read) or _is_within(read, target):
            raise OutputOverlaps(
                f"Nothing was written: {_overlap(target, read)}. Name another folder for the"
                " results, beside what is read."
            )


def _overlap(target: str, read: str) -> str:
    if target == read:
        return f"{target} is both read and the folder for results"
    where = "in" if _is_within(target, read) else "around"
    return f"the folder for results, {target}, is {where} {read}, which is read"


def resolved(storage: Storage, path: str) -> str:
    """A path with its scheme, without ``..`` and, on a local disk, without links."""
    absolute = storage.absolute(path)
    scheme, _, rest = absolute.partition(":")
    if scheme != "file":
        return absolute
    return storage.absolute("file://" + os.path.realpath(rest))


def _is_within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _check_replaceable(storage: Storage, target: str, overwrite: bool) -> None:
    """:raises OutputExists: when it exists, unless it may be replaced."""
    entry = storage.find(target)
    if entry is None:
        return
    if not overwrite:
        raise OutputExists(
            f"{target} exists. Choose a new folder, or add --overwrite to replace results that"
            " disque-pipeline wrote there."
        )
    names = _listed(storage, target) if entry.is_folder else None
    if names is None:
        raise OutputExists(
            f"{target} is not replaced: it has no file {MARKER}, so disque-pipeline did not make"
            " it, or an earlier version did. Choose a new folder, or look at what is in there and"
            " remove it by hand."
        )
    others = sorted(set(_files(storage, target, target)) - names)
    if others:
        raise OutputExists(
            f"{target} is not replaced: it also holds what disque-pipeline did not write, such as"
            f" {others[0]}. Choose a new folder, or move that elsewhere."
        )


def _listed(storage: Storage, folder: str) -> set[str] | None:
    """What the marker of a folder lists, and itself; ``None`` without a valid marker."""
    marker = f"{folder}/{MARKER}"
    if storage.find(marker) is None:
        return None
    try:
        values = json.loads(storage.read(marker))
        return {MARKER, *values["files"]} if values["format"] == _FORMAT else None
    except (ValueError, TypeError, KeyError):
        return None


def _files(storage: Storage, folder: str, root: str, depth: int = _DEPTH_MAX) -> Iterator[str]:
    """The files in a folder and below, by their paths below ``root``; also folders that are empty,
    or deeper than any of ours, as a link may seem to be."""
    entries = storage.entries(folder) if depth else []
    if not entries and folder != root:
        yield folder[len(root) + 1 :]
    for entry in entries:
        if entry.is_folder:
            yield from _files(storage, entry.path, root, depth - 1)
        else:
            yield entry.path[len(root) + 1 :]
