"""Paths, and the operations on files that the configuration uses."""

from __future__ import annotations

import errno
import os

import attrs


def resolve(folder: str, path: str) -> str:
    """``path`` relative to ``folder``; an empty path means none and stays empty."""
    return os.path.join(folder, path) if path else ""


@attrs.frozen
class Files:
    """The real file system. ``cwd``: the absolute folder that applies before any ``dir``.

    Every method takes absolute paths and raises ``OSError`` if it fails.
    """

    cwd: str = attrs.field(factory=os.getcwd)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with open(path, "rb") as file:
            return file.read()

    def enter(self, folder: str) -> str:
        """The real path of a folder, if files in it can be accessed."""
        if "\0" in folder or not folder:
            code = errno.EINVAL if folder else errno.ENOENT
            raise OSError(code, os.strerror(code))
        real = os.path.realpath(folder, strict=True)
        if not os.path.isdir(real):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(real, os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real

    def try_append(self, path: str) -> None:
        """Open a file for appending, creating it, and close it again."""
        with open(path, "ab"):
            pass


def os_error_text(error: OSError) -> str:
    """The operating system's text, without Python's additions."""
    return error.strerror or str(error)
