"""File operations wherever Spark keeps tables: a local disk, HDFS, an object store."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import attrs
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

#: Bytes of a file that is read into memory; the largest are lists of some 100,000 files.
_READ_BYTES_MAX: Final = 256 << 20


@attrs.frozen
class Entry:
    """A file or a folder. ``path``: absolute, with its scheme. ``changed_ms``: since 1970."""

    path: str
    size: int
    changed_ms: int
    is_folder: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class Storage:
    """Hadoop's file systems, as configured in Spark."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._java = context._jvm
        self._configuration = context._jsc.hadoopConfiguration()

    def absolute(self, path: str) -> str:
        """A path with its scheme, without ``..``."""
        place = self._place(path)
        return str(self._system(path).makeQualified(place).toString())

    def find(self, path: str) -> Entry | None:
        """The file or folder at a path, if there is one."""
        system, place = self._system(path), self._place(path)
        return _entry(system.getFileStatus(place)) if system.exists(place) else None

    def entries(self, folder: str) -> list[Entry]:
        """The entries of a folder, by name; none if it does not exist."""
        system, place = self._system(folder), self._place(folder)
        if not system.exists(place):
            return []
        return sorted((_entry(status) for status in system.listStatus(place)), key=lambda e: e.path)

    def read(self, path: str) -> str:
        """A small file as text."""
        with_limit = self._java.org.apache.commons.io.IOUtils.toByteArray
        entry = self.find(path)
        if entry is None or entry.size > _READ_BYTES_MAX:
            raise OSError(f"{path} is not there, or larger than {_READ_BYTES_MAX} bytes")
        stream = self._system(path).open(self._place(path))
        try:
            return bytes(with_limit(stream)).decode()
        finally:
            stream.close()

    def publish(self, path: str, text: str) -> bool:
        """Create a file that is complete or does not exist; ``False`` if it existed already."""
        folder, _, name = path.rpartition("/")
        system, temporary = self._system(path), f"{folder}/_tmp-{name}-{uuid4().hex}"
        stream = system.create(self._place(temporary))
        stream.write(text.encode())
        stream.hsync()
        stream.close()
        made = self._claim(temporary, path)
        system.delete(self._place(temporary), False)
        return made

    def _claim(self, temporary: str, path: str) -> bool:
        """Rename, unless the name exists. Java's rename on a local disk would replace the file."""
        parts = urlsplit(path)
        if parts.scheme == "file":
            try:
                os.link(unquote(urlsplit(temporary).path), unquote(parts.path))
            except FileExistsError:
                return False
            return True
        if self.find(path) is not None:
            return False
        return bool(self._system(path).rename(self._place(temporary), self._place(path)))

    def move(self, source: str, target: str) -> None:
        """Rename a file or folder; nothing to do if that happened already.

        :raises OSError: when it cannot be done.
        """
        system = self._system(source)
        if self._was_moved(source, target):
            return
        system.mkdirs(self._place(target).getParent())
        try:
            moved = system.rename(self._place(source), self._place(target))
        except Py4JJavaError as error:
            moved, why = False, f": {error.java_exception}"
        else:
            why = ""
        # Another process may have done it at the same time.
        if not moved and not self._was_moved(source, target):
            raise OSError(f"{source} can't be renamed to {target}{why}.")

    def _was_moved(self, source: str, target: str) -> bool:
        return self.find(source) is None and self.find(target) is not None

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        self._system(path).delete(self._place(path), True)

    def _place(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._place(path).getFileSystem(self._configuration)


def _entry(status: Any) -> Entry:
    return Entry(
        str(status.getPath().toString()),
        int(status.getLen()),
        int(status.getModificationTime()),
        bool(status.isDirectory()),
    )
