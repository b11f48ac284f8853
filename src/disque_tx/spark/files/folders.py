"""The files that a path stands for."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from disque_tx.spark.errors import BadOption
from disque_tx.spark.options import FormatOptions


def folder_options(form: str, options: Mapping[str, str], *more: str) -> tuple[str, ...]:
    """The paths passed to ``load``, for a format that reads files.

    :raises BadOption: when there are none, or an option is unknown.
    """
    checked = FormatOptions(form, options, ("path", "paths", *more))
    several = checked.text("paths")
    if several is None:
        return (checked.required("path", "/var/lib/disque/events"),)
    return tuple(str(path) for path in json.loads(several))


def found(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """The files of a path: itself, those of a folder and below, or those of a pattern.

    In folders, names that begin with ``_`` or ``.`` are ignored, as by Spark, and so are names
    that end with none of the suffixes, as well as pipes: whoever opens one waits for a writer.

    :raises BadOption: when there is no such file.
    """
    return [file for root in roots(path) for file in _below(Path(root), suffixes)]


def roots(path: str) -> list[str]:
    """The files and folders that a path or pattern stands for.

    :raises BadOption: when there are none.
    """
    plain = path.removeprefix("file://")
    names = [plain] if os.path.exists(plain) else sorted(glob.glob(plain))
    if not names:
        raise BadOption(
            f"There is no file at {path!r}. Files are read where the query runs: use a path that"
            " exists on all its machines."
        )
    return names


def _below(root: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    if root.is_file():
        yield str(root)
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name[0] not in "._" and name.endswith(suffixes) and not Path(path).is_fifo():
                yield path
