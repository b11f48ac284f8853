"""Files that belong to one node: locked before they are used, so that no other node uses them.

The lock belongs to the file, not to its name, and the original locks no log: so after locking a
file, the node also checks that the name still is that file's. A file that is of no use is set
aside under another name.
"""

from __future__ import annotations

import errno
from typing import Final

from disque_tx.engine.interfaces import IFile, IFiles

IN_USE: Final = "another node uses it"
#: Each try fails only when another process gave the name to another file in that very moment.
_TRIES: Final = 10


def claim(files: IFiles, path: str, may_be_new: bool = True) -> IFile:
    """Open and lock the file of this name; no other node can until it is closed.

    Raises ``OSError``: with the text ``IN_USE`` when another node has it, ``FileNotFoundError``
    when there is none and ``may_be_new`` is not set.
    """
    for _ in range(_TRIES):
        file = files.open(path, may_be_new)
        try:
            file.lock()
            if file.is_at(path):
                return file
        except BlockingIOError as error:
            file.close()
            raise in_use(path) from error
        except OSError:
            file.close()
            raise
        file.close()
    raise in_use(path)


def claim_empty(files: IFiles, path: str) -> IFile:
    """Claim the file as :func:`claim` does, and empty it."""
    file = claim(files, path)
    try:
        file.truncate(0)
    except OSError:
        file.close()
        raise
    return file


def claim_name(files: IFiles, path: str, aside: str) -> IFile:
    """The file of this name, which is about to be replaced. One that is not empty is not ours: it
    is renamed to ``aside``.

    Raises ``OSError`` as :func:`claim` does.
    """
    file = claim(files, path)
    try:
        if not file.size():
            return file
        files.rename(path, aside)
    except OSError:
        file.close()
        raise
    file.close()
    return claim(files, path)


def in_use(path: str) -> OSError:
    """The error for a file that another node uses."""
    return BlockingIOError(errno.EWOULDBLOCK, IN_USE, path)


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


def log_files(log_path: str) -> list[str]:
    """The log of a node, and what lies beside it."""
    return [log_path, queued_path(log_path)]


def queued_path(log_path: str) -> str:
    """Where the file is that says which jobs of a log were queued when the node stopped."""
    return f"{log_path}.queued"
