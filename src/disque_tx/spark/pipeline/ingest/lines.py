"""Lines of event logs as batches of Arrow, for an ingest: which are events, and which are not.

Arrow parses blocks of lines. One in which a line is damaged is parsed in halves, and so on, so that
such lines cost little.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
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

_SCHEMA: Final = arrow_schema(EVENTS_DDL)
_PIECE_BYTES: Final = 1 << 20
_COMPRESSED: Final = ".zst"
#: Behind the last byte of every file.
_WHOLE: Final = 1 << 62
_JOINT: Final = re.compile(JOINT.encode())
#: What text has in which two objects are on a line. It may also be in a name.
_JOINTS: Final = (b"}{", b"} ", b"}\t", b"}\r")
_PARSING: Final = pa.json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
#: Arrow reads times of the year before as well, for which Delta and most programs have no days.
_FIRST_TIME: Final = pa.scalar(datetime(1, 1, 1, tzinfo=UTC), _SCHEMA.field("time").type)
_ABOUT_JOBS: Final = "disque.job."


class Unreadable(PipelineError):
    """A file cannot be read any more."""


@attrs.frozen
class FilePart:
    """The lines of the file at a resolved path that begin between two of its bytes; of a compressed
    file, all."""

    path: str
    begin: int = 0
    end: int = _WHOLE


@attrs.frozen
class LogLines:
    """Lines of a file, without those that are blank. ``events``: of those that are events, the
    columns of ``EVENTS_DDL``. ``others``: the reason (``torn`` or ``foreign``) and the text of each
    of the others."""

    events: pa.Table
    others: list[tuple[str, str]]


def parts(files: Iterable[tuple[str, int]], part_bytes: int) -> Iterator[tuple[FilePart, int]]:
    """Files, of which paths and sizes are given, in parts of a size, each with its size.
    Compressed ones are not divided. The last part of a file has what was added to it since."""
    for path, size in files:
        begins = range(0, max(size, 1), size or 1 if path.endswith(_COMPRESSED) else part_bytes)
        for begin, end in zip(begins, [*begins[1:], _WHOLE], strict=True):
            yield FilePart(path, begin, end), min(end, size) - begin


def read(part: FilePart) -> Iterator[LogLines]:
    """The lines of a part of a file, many at once. Several objects on a line are several lines.

    :raises Unreadable: when the file has changed since it was examined.
    """
    for block in complete(_content(part), part.path):
        text = _utf8(block)
        count = text.count(b"\n")
        # One brace to a line, and at its end: no line has two objects.
        is_plain = text.count(b"}") == count == text.count(b"}\n")
        objects = _objects(text, count) if is_plain else None
        if objects is not None and pc.all(_are_events(objects)).as_py():
            yield LogLines(objects, [])
        else:
            yield from _parsed(_lines(text))


def _content(part: FilePart) -> Iterator[bytes]:
    system, place = opened(part.path)
    try:
        if part.path.endswith(_COMPRESSED):
            with system.open_input_stream(place, compression="zstd") as stream:
                yield from _pieces(stream)
        else:
            with system.open_input_file(place) as file:
                yield from _between(file, part.begin, part.end)
    except (OSError, pa.ArrowException) as error:
        why = str(error).partition("\n")[0]
        raise Unreadable(
            f"{part.path} changed while it was read: {why}. Nothing of this batch was added. Run"
            " the command again."
        ) from error


def _pieces(stream: pa.NativeFile) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _between(file: pa.NativeFile, begin: int, end: int) -> Iterator[bytes]:
    """The lines that begin between two bytes of a file. The one in which a part begins belongs to
    the part before."""
    at = max(begin - 1, 0)
    file.seek(at)
    is_before = begin > 0
    for piece in _pieces(file):
        rest = piece
        if is_before:
            before, newline, rest = piece.partition(b"\n")
            at += len(before) + len(newline)
            is_before = not newline
            if at >= end:
                return
        last = rest.find(b"\n", max(end - 1 - at, 0))
        if last >= 0:
            yield rest[: last + 1]
            return
        at += len(rest)
        yield rest


def _utf8(block: bytes) -> bytes:
    """A block in which bytes that are not UTF-8 are replaced."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return block.decode("utf-8", "replace").encode()
    return block


def _lines(text: bytes) -> list[bytes]:
    """Lines that are not blank, each with one object at most."""
    if any(mark in text for mark in _JOINTS):
        text = _JOINT.sub(b"\n", text)
    return [line for line in text.split(b"\n") if line.strip()]


def _parsed(lines: list[bytes]) -> Iterator[LogLines]:
    if not lines:
        return
    objects = _objects(b"\n".join(lines), len(lines))
    if objects is not None:
        yield _sorted(lines, objects)
    elif len(lines) > 1:
        half = len(lines) // 2
        yield from _parsed(lines[:half])
        yield from _parsed(lines[half:])
    else:
        yield LogLines(_SCHEMA.empty_table(), [("torn", lines[0].decode())])


def _objects(block: bytes, lines: int) -> pa.Table | None:
    """A row per line; ``None`` if one of them is something else, or has a value of a wrong type."""
    options = pa.json.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        table = pa.json.read_json(io.BytesIO(block), options, _PARSING)
    except pa.ArrowException:
        return None
    # Arrow also accepts one object on two lines.
    return table if len(table) == lines else None


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
        pc.greater_equal(objects["time"], _FIRST_TIME),
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
