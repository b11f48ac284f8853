"""What reading a configuration needs of the file system."""

from __future__ import annotations

import errno
import os

import attrs


def resolve(folder: str, path: str) -> str:
    """``path`` as seen from ``folder``; an empty path means 'none' and stays empty."""
    return os.path.join(folder, path) if path else ""


@attrs.frozen
class Files:
    """The real file system. ``cwd``: absolute folder in force before any ``dir``.

    Every method takes absolute paths and raises ``OSError`` when it cannot do its work.
    """

    cwd: str = attrs.field(factory=os.getcwd)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with open(path, "rb") as file:
            return file.read()

    def enter(self, folder: str) -> str:
        """The real path of a folder in which files can be reached."""
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
    """What the operating system says, without Python's decoration."""
    return error.strerror or str(error)
