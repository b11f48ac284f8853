"""Small files beside the log and the nodes file: reading one, and setting aside one that is of no
use."""

from __future__ import annotations

from disque_tx.engine.interfaces import IFiles


def read_whole(files: IFiles, path: str, bytes_max: int) -> bytes | None:
    """Up to this number of bytes of a file; ``None`` if there is none. ``OSError`` if it cannot be
    read."""
    try:
        file = files.open(path)
    except FileNotFoundError:
        return None
    try:
        return bytes(file.read(0, min(file.size(), bytes_max)))
    finally:
        file.close()


def set_aside(files: IFiles, path: str, kept: str) -> None:
    """Give a file another name, for good; ``OSError`` if that cannot be done."""
    files.rename(path, kept)
    files.sync_folder(kept)
