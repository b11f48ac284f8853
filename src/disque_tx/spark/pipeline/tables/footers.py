"""Files that were written for a Delta table, and what their footers say about them."""

from __future__ import annotations

import json
from datetime import datetime
from time import time_ns
from typing import Any, Final

import attrs
import pyarrow.parquet as pq

from disque_tx.spark.paths import files_below, opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile

#: Longer texts are left out of the statistics of a file.
_STATISTIC_CHARACTERS_MAX: Final = 128


@attrs.frozen
class Staged:
    """Files that were written to a ``folder`` of a table, and are not part of the table yet."""

    folder: str
    files: list[DataFile]

    @property
    def names(self) -> list[str]:
        """Their paths below the table."""
        return [file.path for file in self.files]


def written(root: str, folder: str) -> list[DataFile]:
    """The Parquet files in a folder of the table at ``root``, and what their footers say about
    them."""
    system, place = opened(root)
    found = []
    for name, info in files_below(f"{root}/{folder}"):
        if not name.endswith(".parquet"):
            continue
        footer = pq.read_metadata(f"{place}/{folder}/{name}", filesystem=system)
        if footer.num_rows:
            at_ms = info.mtime_ns // 1_000_000
            file = data_file(folder, name, info.size, footer.num_rows, footer_statistics(footer))
            found.append(attrs.evolve(file, modified_ms=at_ms))
    return found


def data_file(folder: str, name: str, size: int, rows: int, statistics: str) -> DataFile:
    """A file that is written now. ``name``: below the folder, with the values of partitions."""
    parts = (part.partition("=") for part in name.split("/")[:-1])
    return DataFile(
        path=f"{folder}/{name}",
        size=size,
        modified_ms=time_ns() // 1_000_000,
        rows=rows,
        partition={key: value for key, _, value in parts},
        statistics=statistics,
    )


def footer_statistics(footer: Any) -> str:
    """Rows, and for each column the least and greatest value, so that readers leave out files."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for at in range(footer.num_columns):
        groups = [footer.row_group(group).column(at) for group in range(footer.num_row_groups)]
        name = groups[0].path_in_schema
        known = [group.statistics for group in groups]
        if "." in name or any(each is None or not each.has_min_max for each in known):
            continue
        try:
            low, high = min(each.min for each in known), max(each.max for each in known)
        except OverflowError:
            # A time after the year 9999, which Python does not have.
            continue
        if _is_statistic(low) and _is_statistic(high):
            least[name], greatest[name] = _plain(low), _plain(high)
    return json.dumps(
        {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": {}}
    )


def _is_statistic(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _STATISTIC_CHARACTERS_MAX
    return isinstance(value, int | datetime) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Times of this pipeline are UTC."""
    return f"{value:%Y-%m-%dT%H:%M:%S.%fZ}" if isinstance(value, datetime) else value


def discard(root: str, folder: str) -> None:
    """Remove a folder of files that nobody committed."""
    system, place = opened(root)
    system.delete_dir(f"{place}/{folder}")
