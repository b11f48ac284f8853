"""A DuckDB in the memory of this process, which holds rows while a command runs.

Its memory is limited. What does not fit is on the disk of the table meanwhile, in a folder beside
it that is removed afterwards; one that a killed process left is removed by the next. Beside a table
in an object store this is a folder for temporary files.
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
import pyarrow.dataset as pads

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.footers import Staged, written

MEMORY: Final = "1GiB"
_FOLDER: Final = ".disque-pipeline-"
_LOCK: Final = "lock"
#: What DuckDB says when Ctrl-C ends a query.
_INTERRUPTED: Final = "Query interrupted"
_TOO_LARGE: Final = "Use --engine spark for so many events."


class NotLocal(PipelineError):
    """A path is on another file system than the disks of this machine."""


class Failed(PipelineError):
    """DuckDB could not finish."""


class Database:
    """One database. ``statements``: those without a result that were run, except of views of
    files."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.statements: list[str] = []

    def view(self, view: str, schema: pa.Schema, root: str, files: Iterable[DataFile]) -> None:
        """Make a view of the rows of Parquet files below the folder of a table, with the columns of
        a schema, except ``dt``, which lies in no file."""
        names = [f"{root}/{file.path}" for file in files]
        inside = pa.schema([field for field in schema if field.name != "dt"])
        query = sql.no_rows(inside)
        if names:
            query += f"\nUNION ALL BY NAME SELECT * FROM {self._stored(view, inside, names)}"
        made = f"CREATE OR REPLACE TEMP VIEW {sql.name(view)} AS {sql.typed(inside, query)}"
        self.connection.execute(made)

    def _stored(self, view: str, columns: pa.Schema, names: list[str]) -> str:
        """Parquet files as a source of rows. Those that are on no disk are read by Arrow, a batch
        after the other, since DuckDB would need an extension."""
        if names[0].startswith("/"):
            return sql.parquet(names)
        places = [opened(name) for name in names]
        dataset = pads.dataset(
            [place for _, place in places],
            schema=columns,
            filesystem=places[0][0],
            format="parquet",
        )
        source = f"files of {view}"
        self.connection.register(source, dataset)
        return sql.name(source)

    def write(self, queries: Iterable[str], root: str, partition_by: str | None = None) -> Staged:
        """Write the rows of queries, one after the other, as Parquet to a new folder of a table.
        They are not part of the table yet."""
        folder = f"batch-{uuid4().hex}"
        target = Path(root, folder)
        target.mkdir(parents=True)
        options = ["FORMAT parquet", "COMPRESSION zstd", "ROW_GROUP_SIZE_BYTES '32MiB'"]
        for at, query in enumerate(queries):
            if partition_by is None:
                place, more = target / f"part-{at}.parquet", []
            else:
                place, more = target, [f"PARTITION_BY ({sql.name(partition_by)})"]
                more += ["OVERWRITE_OR_IGNORE", f"FILENAME_PATTERN 'part-{at}-{{i}}'"]
            self.run(f"COPY ({query}) TO {sql.text(str(place))} ({', '.join(options + more)})")
        return Staged(folder, written(root, folder))

    def run(self, statement: str) -> None:
        """Run a statement without a result."""
        self.statements.append(statement)
        self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, of which there are few."""
        return self.connection.execute(query).fetchall()

    def records(self, query: str) -> list[dict[str, Any]]:
        """The same with the names of the columns."""
        found = self.connection.execute(query)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@contextmanager
def database(root: str, too_large: str = _TOO_LARGE) -> Iterator[Database]:
    """A database for a command that writes to, or reads, the table at a resolved path.

    ``too_large``: what to do when there is not enough memory.

    :raises Failed: when DuckDB cannot finish, with the reason.
    """
    beside = Path(root).parent if root.startswith("/") else Path(tempfile.gettempdir())
    with _spilling(beside) as folder:
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
                f"DuckDB needs more than {MEMORY} of memory for {root}. {too_large}"
            ) from error
        except duckdb.Error as error:
            raise Failed(f"DuckDB failed: {str(error).strip().partition(chr(10))[0]}") from error
        except RuntimeError as error:
            if str(error) == _INTERRUPTED:
                raise KeyboardInterrupt from None
            raise
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
