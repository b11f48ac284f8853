"""Lines of event logs as batches of Arrow, even of damaged files (docs/reference/events.md).

Arrow parses whole blocks of lines. A block with a line that is not an event is parsed line by line,
and such lines go into the column ``_corrupt``.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.json
import zstandard

from disque_tx.spark.schema import CORRUPT_COLUMN, EVENTS_DDL, EVENTS_READ_DDL, arrow_schema

_LOG: Final = logging.getLogger(__name__)
_BLOCK_BYTES: Final = 1 << 20
#: Lines of the daemon are shorter, unless they contain bodies; longer ones are not kept.
_LINE_BYTES_MAX: Final = 64 << 20
#: The fields that every event has.
_NEEDED: Final = ("id", "source", "type")


def batches(lines: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """The events of blocks of lines."""
    for block in lines:
        yield from _events(block)


def blocks(file: str) -> Iterator[bytes]:
    """Complete lines of a file, many at once. The last one may be incomplete, if the file is."""
    with open(file, "rb") as raw:
        yield from complete(pieces(raw, file), file)


def complete(content: Iterable[bytes], file: str) -> Iterator[bytes]:
    """The same of a file of which the content is here."""
    rest = b""
    for piece in content:
        lines, newline, rest = (rest + piece).rpartition(b"\n")
        if newline:
            yield lines + newline
        if len(rest) > _LINE_BYTES_MAX:
            _LOG.warning("%s has a line of more than %d bytes.", file, _LINE_BYTES_MAX)
            break
    if rest:
        yield rest


def pieces(raw: BinaryIO, file: str) -> Iterator[bytes]:
    """The content of what is open under the name ``file``, decompressed as far as possible."""
    if not file.endswith(".zst"):
        while piece := raw.read(_BLOCK_BYTES):
            yield piece
        return
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    done = 0
    try:
        while piece := reader.read(_BLOCK_BYTES):
            done += len(piece)
            yield piece
    except zstandard.ZstdError as error:
        rest = _to_damage(raw, done) if raw.seekable() else b""
        _LOG.warning("%s is damaged behind %d bytes of lines: %s", file, done + len(rest), error)
        if rest:
            yield rest


def _to_damage(raw: BinaryIO, done: int) -> bytes:
    """What lies between ``done`` bytes of lines and the damage. It is read block by block of the
    compressed file, for a step that fails loses what it had decompressed."""
    raw.seek(0)
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    reader.seek(done)
    rest = bytearray()
    with suppress(zstandard.ZstdError):
        while block := reader.read(zstandard.BLOCKSIZE_MAX):
            rest += block
    return bytes(rest)


def _events(block: bytes) -> Iterator[pa.RecordBatch]:
    table = _parsed(block)
    if table is None:
        yield from _one_by_one(block)
    else:
        yield from _with_corrupt(table).to_batches()


def _parsed(block: bytes) -> pa.Table | None:
    """The events of complete lines; ``None`` if one of them is not an event."""
    options = pa.json.ReadOptions(block_size=len(block) + 1, use_threads=False)
    try:
        table = pa.json.read_json(io.BytesIO(block), options, _PARSING)
    except pa.ArrowInvalid:
        return None
    # Arrow also accepts two objects on a line.
    whole = len(table) == sum(1 for line in block.splitlines() if line.strip())
    return table if whole and not any(table[name].null_count for name in _NEEDED) else None


def _one_by_one(block: bytes) -> Iterator[pa.RecordBatch]:
    for line in block.splitlines():
        if not line.strip():
            continue
        table = _parsed(line)
        yield from (_foreign(line) if table is None else _with_corrupt(table)).to_batches()


def _with_corrupt(table: pa.Table) -> pa.Table:
    nothing = pa.nulls(len(table), pa.string())
    return table.append_column(CORRUPT_COLUMN, nothing).cast(_READ_SCHEMA)


def _foreign(line: bytes) -> pa.Table:
    columns: dict[str, Any] = {field.name: [None] for field in _SCHEMA}
    columns[CORRUPT_COLUMN] = [line.decode("utf-8", "backslashreplace")]
    return pa.table(columns, schema=_READ_SCHEMA)


_SCHEMA: Final = arrow_schema(EVENTS_DDL)
_READ_SCHEMA: Final = arrow_schema(EVENTS_READ_DDL)
_PARSING: Final = pa.json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")
