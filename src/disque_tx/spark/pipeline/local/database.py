"""A DuckDB in the memory of this process, which holds rows while a command runs.

Its memory is limited. What does not fit is on the disk of the table meanwhile, in a folder beside
it that is removed afterwards; one that a killed process left is removed by the next.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
import pyarrow as pa

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.footers import Staged, written

MEMORY: Final = "1GiB"
_FOLDER: Final = ".disque-pipeline-"
_LOCK: Final = "lock"


class NotLocal(PipelineError):
    """A path is on another file system than the disks of this machine."""


class Failed(PipelineError):
    """DuckDB could not finish."""


class Database:
    """One database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def view(self, view: str, schema: pa.Schema, root: str, files: Iterable[DataFile]) -> None:
        """Make a view of the rows of Parquet files below the folder of a table, with the columns of
        a schema, except ``dt``, which lies in no file."""
        names = [f"{root}/{file.path}" for file in files]
        inside = pa.schema([field for field in schema if field.name != "dt"])
        query = sql.no_rows(inside)
        if names:
            # DuckDB takes the name of a file that exists for no pattern.
            query += (
                f"\nUNION ALL BY NAME SELECT * FROM read_parquet({sql.texts(names)},"
                " union_by_name = true, hive_partitioning = false)"
            )
        self.run(f"CREATE OR REPLACE TEMP VIEW {sql.name(view)} AS {sql.typed(inside, query)}")

    def write(self, query: str, root: str, partition_by: str | None = None) -> Staged:
        """Write the rows of a query as Parquet to a new folder of a table. They are not part of the
        table yet."""
        folder = f"batch-{uuid4().hex}"
        target = Path(root, folder)
        target.mkdir(parents=True)
        options = ["FORMAT parquet", "COMPRESSION zstd", "ROW_GROUP_SIZE_BYTES '32MiB'"]
        if partition_by is None:
            target /= "part-0.parquet"
        else:
            options += [f"PARTITION_BY ({sql.name(partition_by)})", "OVERWRITE_OR_IGNORE"]
        self.run(f"COPY ({query}) TO {sql.text(str(target))} ({', '.join(options)})")
        return Staged(folder, written(root, folder))

    def run(self, statement: str) -> None:
        """Run a statement without a result."""
        self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, of which there are few."""
        return self.connection.execute(query).fetchall()


@contextmanager
def database(root: str) -> Iterator[Database]:
    """A database for a command that writes to, or reads, the table at a resolved path.

    :raises NotLocal: when that is not on a disk of this machine.
    :raises Failed: when DuckDB cannot finish, with the reason.
    """
    check_local(root)
    with _spilling(Path(root).parent) as folder:
        connection = duckdb.connect(
            config={
                "memory_limit": MEMORY,
                "temp_directory": str(folder),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        try:
            connection.execute("SET TimeZone = 'UTC'")
            yield Database(connection)
        except duckdb.OutOfMemoryException as error:
            raise Failed(
                f"DuckDB needs more than {MEMORY} of memory for {root}. Use --engine spark for so"
                " many events."
            ) from error
        except duckdb.Error as error:
            raise Failed(f"DuckDB failed: {str(error).strip().partition(chr(10))[0]}") from error
        finally:
            connection.close()


def check_local(path: str) -> None:
    """:raises NotLocal: when a resolved path is not on a disk of this machine."""
    if not path.startswith("/"):
        raise NotLocal(f"{path} is not on a disk of this machine. Use --engine spark for it.")


@contextmanager
def _spilling(parent: Path) -> Iterator[Path]:
    """A new folder, which nobody removes while this process has it."""
    for left in parent.glob(f"{_FOLDER}*"):
        _remove_abandoned(left)
    folder = _new_folder(parent)
    new = folder / f"new-{_LOCK}"
    with new.open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Locked before others can find it.
        new.rename(folder / _LOCK)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder(parent: Path) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_FOLDER, dir=parent))
    except OSError:
        # A table that is only read may be where this process cannot write.
        return Path(tempfile.mkdtemp(prefix=_FOLDER))


def _remove_abandoned(folder: Path) -> None:
    """Remove the folder of a process that is gone."""
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        # Another process has it, or has yet to lock it.
        return
