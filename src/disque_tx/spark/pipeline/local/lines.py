"""Lines of event logs as batches of Arrow, for an ingest: which are events, and which are not.

Arrow parses blocks of lines. One in which a line is damaged is parsed in halves, and so on, so that
such lines cost little.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.files.lines import complete
from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.ingest.fields import JOINT, NODE, NUMBER, NUMBER_MAX, NUMBERS, TYPE
from disque_tx.spark.schema import EVENTS_DDL, arrow_schema

SCHEMA: Final = arrow_schema(EVENTS_DDL)
_PIECE_BYTES: Final = 1 << 20
_JOINT: Final = re.compile(JOINT.encode())
_PARSING: Final = pa.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
_ABOUT_JOBS: Final = "disque.job."


class Unreadable(PipelineError):
    """A file cannot be read any more."""


@attrs.frozen
class LogLines:
    """Lines of a file, without those that are blank. ``events``: of those that are events, the
    columns of ``EVENTS_DDL``. ``others``: the reason (``torn`` or ``foreign``) and the text of each
    of the others."""

    events: pa.Table
    others: list[tuple[str, str]]


def read(path: str) -> Iterator[LogLines]:
    """The lines of a file at a resolved path, many at once. Several objects on a line are several
    lines.

    :raises Unreadable: when the file has changed since it was examined.
    """
    for block in complete(_content(path), path):
        yield from _parsed([line for line in _utf8(block).split(b"\n") if line.strip()])


def _content(path: str) -> Iterator[bytes]:
    system, place = opened(path)
    compression = "zstd" if path.endswith(".zst") else None
    try:
        with system.open_input_stream(place, compression=compression) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece
    except (OSError, pa.ArrowException) as error:
        why = str(error).partition("\n")[0]
        raise Unreadable(
            f"{path} changed while it was read: {why}. Nothing of this batch was added. Run the"
            " command again."
        ) from error


def _utf8(block: bytes) -> bytes:
    """A block in which bytes that are not UTF-8 are replaced."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode("utf-8", "replace").encode()
    return block


def _parsed(lines: list[bytes]) -> Iterator[LogLines]:
    if not lines:
        return
    objects = _objects(lines)
    if objects is not None:
        yield _sorted(lines, objects)
    elif len(lines) > 1:
        half = len(lines) // 2
        yield from _parsed(lines[:half])
        yield from _parsed(lines[half:])
    else:
        several = [piece for piece in _JOINT.split(lines[0]) if piece.strip()]
        if len(several) > 1:
            yield from _parsed(several)
        else:
            yield LogLines(SCHEMA.empty_table(), [("torn", lines[0].decode())])


def _objects(lines: list[bytes]) -> pa.Table | None:
    """A row per line; ``None`` if one of them is something else, or has a value of a wrong type."""
    block = b"\n".join(lines)
    options = pa.json.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        table = pa.json.read_json(io.BytesIO(block), options, _PARSING)
    except pa.ArrowException:
        return None
    # Arrow also accepts two objects on a line, and one on two lines.
    return table if len(table) == len(lines) else None


def _sorted(lines: list[bytes], objects: pa.Table) -> LogLines:
    is_event = _are_events(objects)
    if pc.all(is_event).as_py():
        return LogLines(objects, [])
    others = [
        ("foreign", line.decode())
        for line, known in zip(lines, is_event.to_pylist(), strict=True)
        if not known
    ]
    return LogLines(objects.filter(is_event), others)


def _are_events(objects: pa.Table) -> pa.ChunkedArray:
    """For each row, whether it is an event of a node."""
    numbers = [objects[name] for name in NUMBERS]
    usual = pc.and_(
        pc.less_equal(pc.max_element_wise(*numbers), NUMBER_MAX),
        pc.greater_equal(pc.min_element_wise(*numbers), -NUMBER_MAX),
    )
    conditions: Iterable[pa.ChunkedArray] = (
        pc.equal(objects["specversion"], "1.0"),
        pc.match_substring_regex(objects["type"], TYPE),
        pc.is_valid(objects["time"]),
        pc.match_substring_regex(objects["source"], NODE),
        pc.match_substring_regex(objects["id"], NUMBER),
        pc.fill_null(usual, True),
        pc.or_(
            pc.invert(pc.starts_with(objects["type"], _ABOUT_JOBS)), pc.is_valid(objects["subject"])
        ),
    )
    answer = pa.chunked_array([pa.repeat(pa.scalar(True), len(objects))])
    for condition in conditions:
        answer = pc.and_(answer, pc.fill_null(condition, False))
    return answer
