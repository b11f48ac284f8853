"""Which files a path names."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from disque_tx.spark.errors import BadOption
from disque_tx.spark.options import Given


def folder_options(form: str, options: Mapping[str, str], *more: str) -> tuple[str, ...]:
    """The paths given to ``load``, of a format that has few other options.

    :raises BadOption: when there are none, or an option is unknown.
    """
    given = Given(form, options, ("path", "paths", *more))
    several = given.text("paths")
    if several is None:
        return (given.needed("path", "/var/lib/disque/events"),)
    return tuple(str(path) for path in json.loads(several))


def found(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files of a path: itself, those of a folder and below, or those of a pattern.

    In folders, names that begin with ``_`` or ``.`` are passed by, as Spark does, and so are names
    that end with none of the suffixes.

    :raises BadOption: when there is nothing.
    """
    plain = path.removeprefix("file://")
    roots = [plain] if os.path.exists(plain) else sorted(glob.glob(plain))
    if not roots:
        raise BadOption(
            f"There is no file at {path!r}. Files are read where the query runs: give a path that"
            " all its machines have."
        )
    return [file for root in roots for file in _below(Path(root), suffixes)]


def _below(root: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    if root.is_file():
        yield str(root)
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            if name[0] not in "._" and name.endswith(suffixes):
                yield os.path.join(folder, name)
