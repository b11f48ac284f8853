"""A program that converts rotated segments of the event log into compressed lines of JSON.

It is a process of its own, with the lowest priority, so that a node never waits for it. It may be
killed at any moment and run again: a segment is removed only when its lines are safe on the disk,
and converting it again gives the same file. One that is still at work when its node is started
again has its segment locked; the node's next one waits for it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from datetime import UTC, datetime
from typing import Final

import zstandard

from disque_tx.errors import PeerError
from disque_tx.wire.events.lines import Segment

_CHUNK_BYTES: Final = 1 << 20
#: A higher one takes twice as long and saves next to nothing.
_LEVEL: Final = 1
_NICE_MAX: Final = 19


def convert(path: str) -> str | None:
    """Convert one segment and remove it; returns the path of its lines, ``None`` if it had none, or
    was converted before.

    A file that is not a segment is kept under a name that begins with ``_bad-``.

    :raises OSError: when the disk refuses; the segment stays.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not os.fstat(file.fileno()).st_nlink:  # by the one that had it locked
            return None
        return _convert(path, file.read())


def _convert(path: str, data: bytes) -> str | None:
    folder, name = os.path.split(path)
    try:
        segment = Segment(data)
    except PeerError as error:
        os.replace(path, os.path.join(folder, name.replace("_full-", "_bad-")))
        print(f"{path}: {error}; kept under a name with _bad-", file=sys.stderr)
        return None
    target = os.path.join(folder, _place(segment, name))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    temporary = os.path.join(os.path.dirname(target), "_tmp-" + os.path.basename(target))
    _write(temporary, segment)
    if segment.torn_bytes:
        print(f"{path}: {segment.torn_bytes} bytes at the end are not an event", file=sys.stderr)
    if segment.count:
        os.replace(temporary, target)
        _sync_folder(os.path.dirname(target))
    else:
        os.unlink(temporary)
    os.unlink(path)
    return target if segment.count else None


def _place(segment: Segment, name: str) -> str:
    """Where the lines belong: by the hour of the first one."""
    begun = datetime.fromtimestamp(int(segment.begun_us // 1_000_000), UTC)
    stem = name.removeprefix("_full-").removesuffix(".events")
    return f"{begun:dt=%Y-%m-%d/hour=%H}/events-{stem}.jsonl.zst"


def _write(path: str, segment: Segment) -> None:
    with open(path, "wb") as file:
        with zstandard.ZstdCompressor(level=_LEVEL).stream_writer(file, closefd=False) as stream:
            while lines := segment.lines(_CHUNK_BYTES):
                stream.write(lines)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def main(paths: list[str]) -> int:
    """Convert segments one after the other; 1 if the disk refused one."""
    os.nice(_NICE_MAX)
    # Only when a processor has nothing else to do; nodes are for Linux.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    status = 0
    for path in paths:
        try:
            convert(path)
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
