"""Files are read to their ends before an engine gets them: what is damaged, or would not fit into
the memory of a task, is refused by name, and the rest goes on."""

from __future__ import annotations

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from disque_tx.spark.paths import opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Lines of the daemon are shorter, even with bodies of some MiB.
LINE_BYTES_MAX: Final = 64 << 20
_PIECE_BYTES: Final = 1 << 20
#: Up to so many bytes of files are read by this process: starting tasks would take longer.
_HERE_BYTES: Final = 8 << 20
_FILES_PER_TASK: Final = 16
#: How a second object on a line may begin. This may also be in a name, which is decided line by
#: line.
_JOINT: Final = re.compile(rb"\}[ \t]+\{")
#: What text is searched for first, which is much faster.
_BEFORE_JOINT: Final = (b"} ", b"}\t")
_SOURCE: Final = re.compile(rb'"source":"(disque:[0-9a-f]{40})"')


@attrs.frozen
class Finding:
    """What there is to say about a file. ``refused``: why it cannot be read; nothing if it can.
    ``joined``: a line may have several objects, or bytes that are not UTF-8. ``source``: of its
    first events, if that is a node."""

    path: str
    refused: str
    joined: bool
    source: str = ""


def examined(spark: SparkSession | None, files: Iterable[tuple[str, int]]) -> list[Finding]:
    """What there is to say about files, by their resolved paths.

    ``files``: paths and sizes in bytes. ``spark``: whose tasks read many of them; without, this
    process does.
    """
    sizes = dict(files)
    paths = list(sizes)
    if spark is None or sum(sizes.values()) <= _HERE_BYTES:
        return [examined_file(path) for path in paths]
    tasks = -(-len(paths) // _FILES_PER_TASK)
    return list(spark.sparkContext.parallelize(paths, tasks).map(examined_file).collect())


def examined_file(path: str, line_bytes_max: int = LINE_BYTES_MAX) -> Finding:
    """What there is to say about one file. It is never in memory as a whole."""
    system, place = opened(path)
    joined, line_bytes, end, source = False, 0, b"", None
    decoder = getincrementaldecoder("utf-8")()
    try:
        compression = "zstd" if path.endswith(".zst") else None
        with system.open_input_stream(place, compression=compression) as stream:
            while piece := stream.read(_PIECE_BYTES):
                newline = piece.rfind(b"\n")
                first = piece.find(b"\n") if newline >= 0 else len(piece)
                if line_bytes + first > line_bytes_max:
                    return Finding(path, f"a line of more than {line_bytes_max} bytes", joined)
                line_bytes = len(piece) - newline - 1 if newline >= 0 else line_bytes + first
                source = _source(piece) if source is None else source
                joined = joined or _is_joined(end + piece) or not _is_utf8(decoder, piece)
                end = _end(end + piece)
    except (OSError, pa.ArrowException) as error:
        return Finding(path, str(error).partition("\n")[0], joined)
    return Finding(path, "", joined, source or "")


def _source(piece: bytes) -> str:
    found = _SOURCE.search(piece)
    return found[1].decode() if found else ""


def _is_utf8(decoder: IncrementalDecoder, piece: bytes) -> bool:
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        return False
    return True


def _is_joined(piece: bytes) -> bool:
    if b"}{" in piece:
        return True
    return any(mark in piece for mark in _BEFORE_JOINT) and _JOINT.search(piece) is not None


def _end(piece: bytes) -> bytes:
    """What a joint may begin with: the last byte, or a brace and a blank if only blanks follow."""
    is_after_brace = piece[-1:] in (b" ", b"\t") and piece.rstrip(b" \t").endswith(b"}")
    return b"} " if is_after_brace else piece[-1:]
