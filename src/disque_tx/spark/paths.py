"""Paths of tables and logs, as this process, Spark and Delta name them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from disque_tx.spark import objectstore
from disque_tx.spark.errors import BadPath, NothingToRead, OutputOverlaps

_LOCAL: Final = "file"
#: Beginnings of the names of files that are unfinished, or not data.
_HIDDEN: Final = "_."
#: The folder of the log of a Delta table.
DELTA_LOG: Final = "_delta_log"
#: A commit that is being written by the library.
_BEGUN: Final = re.compile(rf"{DELTA_LOG}/[^/]+#\d+")
#: In paths of disks the library takes these for other characters, or refuses them.
_ESCAPES: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")


def resolved(path: str) -> str:
    """A path of a local disk without scheme, ``..`` and links; one of S3 as ``s3://…``, checked;
    one of another file system as it is.

    :raises BadPath: when a path is empty or not UTF-8, or one of S3 cannot be used as it is.
    """
    if not path or not is_utf8(path):
        raise BadPath(
            f"'{as_utf8(path)}' cannot be the path of a table or of logs: it is"
            f" {'not UTF-8' if path else 'empty'}. Name a file or folder, or s3://BUCKET/FOLDER."
        )
    parts = urlsplit(path)
    if parts.scheme in objectstore.SCHEMES:
        return objectstore.checked(path)
    if len(parts.scheme) > 1 and parts.scheme != _LOCAL:
        return path.rstrip("/")
    local = path[len(_LOCAL) + 1 :] if path.startswith(f"{_LOCAL}:") else path
    return os.path.realpath("/" + local.lstrip("/") if local.startswith("//") else local)


def is_utf8(path: str) -> bool:
    """Whether a name of a disk is text, as the libraries that open files want it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_utf8(path: str) -> str:
    r"""A name of a disk as text that can be shown: other bytes as ``\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def for_spark(path: str) -> str:
    """A resolved path as Spark's own file systems name it, whichever of them is the default."""
    if path.startswith("/"):
        return f"{_LOCAL}://{path}"
    return path.replace("s3://", "s3a://", 1) if path.startswith("s3://") else path


def opened(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a resolved path, and the path in there.

    :raises BadPath: when there is no such file system.
    """
    if path.startswith("/"):
        return fs.LocalFileSystem(), path
    if objectstore.is_in(path):
        return objectstore.system(), path.partition("://")[2]
    try:
        system, place = fs.FileSystem.from_uri(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise BadPath(
            f"{path} cannot be opened: {why}. Name a folder, or s3://BUCKET/FOLDER."
        ) from error
    return system, str(place)


def make_folder(path: str) -> None:
    """Make the folder at a resolved path; an object store has none."""
    if not objectstore.is_in(path):
        system, place = opened(path)
        system.create_dir(place, recursive=True)


def exists(path: str) -> bool:
    """Whether there is a file or folder at a resolved path.

    :raises BadPath: when there is no such bucket.
    """
    system, place = opened(path)
    if system.get_file_info(place).type != fs.FileType.NotFound:
        return True
    if objectstore.is_in(path):
        objectstore.check_bucket(path)
    return False


def is_empty(path: str) -> bool:
    """Whether there is nothing at a resolved path, or an empty folder."""
    system, place = opened(path)
    kind = system.get_file_info(place).type
    if kind == fs.FileType.Directory:
        return not system.get_file_info(fs.FileSelector(place))
    return bool(kind == fs.FileType.NotFound)


def check_table(root: str) -> None:
    """:raises BadPath: when the library would look for the Delta table at a resolved path
    elsewhere."""
    if root.startswith("/") and (found := _ESCAPES.search(root)):
        raise BadPath(
            f"{root!r} cannot be the folder of a table, since {found[0]!r} would stand for another"
            " character. Choose another name."
        )


def is_absent(root: str) -> bool:
    """Whether there is nothing at a resolved path, or only what is left of a Delta table that could
    not be created, as on a full disk."""
    if is_empty(root):
        return True
    return exists(f"{root}/{DELTA_LOG}") and all(
        _BEGUN.fullmatch(name) for name, _ in files_below(root)
    )


def files_below(path: str) -> Iterator[tuple[str, fs.FileInfo]]:
    """The files in a resolved folder and below, each with its path below there. The folder is
    listed once, however deep it is.

    :raises NothingToRead: when the folder does not exist.
    """
    system, place = opened(path)
    kind = system.get_file_info(place).type
    if kind == fs.FileType.NotFound:
        raise NothingToRead(f"{path} does not exist.")
    found = system.get_file_info(fs.FileSelector(place, recursive=True))
    for info in found:
        if info.type == fs.FileType.File:
            yield info.path[len(place) :].lstrip("/"), info


def names_below(path: str, hidden: list[str] | None = None) -> Iterator[str]:
    """The files in a resolved folder and below, by their paths below there; those whose names, or
    the names of whose folders, begin with ``_`` or ``.`` are left out. On a disk no file is looked
    at, so that folders of a year cost half a second, and what is left out is put into ``hidden``,
    where it begins with that. A folder is entered by a link once, and not if that leads around."""
    if not path.startswith("/"):
        for name, _ in files_below(path):
            if name[0] not in _HIDDEN and not any(f"/{mark}" in name for mark in _HIDDEN):
                yield name
        return
    below = [""]
    linked: set[str] = set()
    while below:
        folder = below.pop()
        with os.scandir(f"{path}/{folder}") as entries:
            for entry in entries:
                if entry.name[0] in _HIDDEN:
                    if hidden is not None:
                        hidden.append(folder + entry.name)
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(f"{folder}{entry.name}/")
                elif _is_linked_folder(entry):
                    place = os.path.realpath(entry.path)
                    if place not in linked and not _is_within(os.path.realpath(path), place):
                        linked.add(place)
                        below.append(f"{folder}{entry.name}/")
                else:
                    yield folder + entry.name


def _is_linked_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_symlink() and os.path.isdir(entry.path)


def check_apart(target: str, inputs: Iterable[str]) -> None:
    """:raises OutputOverlaps: when a place for results is the same as an input, in it, or around
    it. All paths are resolved."""
    for read in inputs:
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


def _is_within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")
