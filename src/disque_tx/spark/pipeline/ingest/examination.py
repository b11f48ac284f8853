"""Files are read to their ends before events are made of them: what is damaged, or would not fit
into the memory of a task, is refused by name, and the rest goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyarrow import fs

from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.ingest.workers import Workers

#: Lines of the daemon are shorter, even with bodies of some MiB.
LINE_BYTES_MAX: Final = 64 << 20
_PIECE_BYTES: Final = 1 << 20
_FILES_PER_TASK: Final = 16


def examined(workers: Workers, paths: Sequence[str]) -> dict[str, str]:
    """Resolved path → why a file cannot be read, for those that cannot be."""
    shares = [paths[at : at + _FILES_PER_TASK] for at in range(0, len(paths), _FILES_PER_TASK)]
    found = (why for share in workers.map(_examined_files, shares) for why in share)
    return {path: why for path, why in zip(paths, found, strict=True) if why}


def unreadable(workers: Workers, paths: Sequence[str]) -> set[str]:
    """Which of these files cannot be read for a reason outside of them, such as rights: the next
    time they may be, without having changed."""
    found = workers.map(_is_unreadable, paths) if paths else []
    return {path for path, is_unreadable in zip(paths, found, strict=True) if is_unreadable}


def _is_unreadable(path: str) -> bool:
    system, place = opened(path)
    if _is_no_file(system, place):
        return True
    try:
        with system.open_input_stream(place, compression=None) as stream:
            while stream.read(_PIECE_BYTES):
                pass
    except (OSError, pa.ArrowException):
        return True
    return False


def _is_no_file(system: fs.FileSystem, place: str) -> bool:
    """Whether something is a pipe or a device: whoever opens one may wait forever."""
    is_local = isinstance(system, fs.LocalFileSystem)
    return is_local and system.get_file_info(place).type == fs.FileType.Unknown


def _examined_files(paths: Sequence[str]) -> list[str]:
    return [examined_file(path) for path in paths]


def examined_file(path: str, line_bytes_max: int = LINE_BYTES_MAX) -> str:
    """Why a file cannot be read; nothing if it can. It is never in memory as a whole."""
    system, place = opened(path)
    if _is_no_file(system, place):
        return "not a file"
    line_bytes = 0
    try:
        compression = "zstd" if path.endswith(".zst") else None
        with system.open_input_stream(place, compression=compression) as stream:
            while piece := stream.read(_PIECE_BYTES):
                newline = piece.rfind(b"\n")
                first = piece.find(b"\n") if newline >= 0 else len(piece)
                if line_bytes + first > line_bytes_max:
                    return f"a line of more than {line_bytes_max} bytes"
                line_bytes = len(piece) - newline - 1 if newline >= 0 else line_bytes + first
    except (OSError, pa.ArrowException) as error:
        return str(error).partition("\n")[0]
    return ""
