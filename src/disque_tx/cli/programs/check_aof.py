"""The program ``disque-check-aof``: check an append only file, and repair a torn end.

It prints the same as the original (cluster protocol, section 14.8), with four additions: the jobs
inside well-framed records are checked too, bytes that are cut off are kept in a file of their own,
and damage in the middle of a file is not cut away without ``--force``. ``--original`` writes a copy
that originals can load.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO, Final

from disque_tx import __version__
from disque_tx.cli.programs.aofscan import ScanReport, next_good_record, pieces_for_original, scan
from disque_tx.errors import DisqueError

_USAGE: Final = "Usage: disque-check-aof [--fix [--force] | --original] <file.aof> | --version"
_CHUNK: Final = 1024 * 1024
_BAR_WIDTH: Final = 40


class Refusal(DisqueError):
    """The file is not changed; the text says why."""


def main(argv: list[str] | None = None) -> int:
    """Run the program; ``argv`` is without the program's name. Returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words in (["--version"], ["-v"]):
        print(f"disque-check-aof {__version__}")
        return 0
    try:
        path, options = _arguments(words)
        if "--original" in options:
            return _without_own(path)
        return _check(path, "--fix" in options, "--force" in options)
    except Refusal as refusal:
        print(refusal)
        return 1
    except KeyboardInterrupt:
        return 130


def _arguments(argv: list[str]) -> tuple[str, set[str]]:
    options = set(argv[:-1])
    if not argv or argv[-1] in ("--help", "--fix", "--force", "--original"):
        raise Refusal(_USAGE)
    for word in argv[:-1]:
        if word not in ("--fix", "--force", "--original"):
            raise Refusal(f"Invalid argument: {word}")
    if options == {"--force"} or ("--original" in options and len(options) > 1):
        raise Refusal(_USAGE)
    return argv[-1], options


def _without_own(path: str) -> int:
    """Write a copy without the records that originals refuse, beside the file."""
    with _open(path, False) as file:
        size = os.fstat(file.fileno()).st_size
        report = scan(file, size, lambda done: None)
        _print_analysis(report)
        if report.cut_at < size or report.foreign:
            raise Refusal("AOF is not valid: repair it first, with --fix")
        if not report.own:
            print("Originals can load this AOF as it is")
            return 0
        copy = _free_name(f"{path}.original")
        try:
            _write_durably(copy, pieces_for_original(file, size), file)
        except OSError as error:
            raise Refusal(f"Failed to write {copy}: {error}") from error
    print(
        f"A copy without these records is in {copy}: its jobs are the same, without their keys,"
        " notes and latest counters"
    )
    return 0


def _check(path: str, fix: bool, force: bool) -> int:
    with _open(path, fix) as file:
        if fix:
            _lock(path, file)
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise Refusal(f"Empty file: {path}")
        bar = ProgressBar(size)
        report = scan(file, size, bar.show)
        bar.clear()
        _print_analysis(report)
        if fix and report.cut_at < size:
            return _repair(path, file, report, force)
    return _verdict(report)


def _open(path: str, writable: bool) -> BinaryIO:
    try:
        return open(path, "r+b" if writable else "rb")
    except OSError as error:
        raise Refusal(f"Cannot open file: {path}") from error


def _lock(path: str, file: BinaryIO) -> None:
    """Lock the file against nodes during the repair; refuse if a node uses it."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Refusal(
            f"Refused: {path} is the log of a running node. Stop the node first."
        ) from error


def _print_analysis(report: ScanReport) -> None:
    if report.problem:
        print(report.problem)
    diff = report.size - report.ok_up_to
    print(f"AOF analyzed: size={report.size}, ok_up_to={report.ok_up_to}, diff={diff}")
    if report.damaged:
        print(f"Damaged record at offset {report.damage_at}: {report.damage}")
        print(f"Records that servers refuse to load: {report.damaged}")
    if report.own:
        print(f"Records of keys, notes and counters, which originals refuse: {report.own}")
    if report.foreign:
        _report(f"records of other kinds, which servers refuse: {report.foreign}")


def _verdict(report: ScanReport) -> int:
    valid = report.cut_at == report.size
    print("AOF is valid" if valid else "AOF is not valid")
    return 0 if valid else 1


def _report(text: str) -> None:
    print(f"disque-check-aof: {text}", file=sys.stderr)


def _repair(path: str, file: BinaryIO, report: ScanReport, force: bool) -> int:
    offset = report.cut_at
    later = next_good_record(file, report.size, offset + 1)
    if later is not None and not force:
        raise Refusal(
            f"Refused: the damage at offset {offset} (0x{offset:x}) is in the middle of the file, "
            f"for a complete record follows at offset {later}.\n"
            f"Cutting there would drop {report.size - offset} bytes with jobs in them; nothing "
            "was changed.\n"
            "Take this node's jobs from a backup or from its replicas, or cut nevertheless with "
            "--fix --force."
        )
    diff = report.size - offset
    print(
        f"This will shrink the AOF from {report.size} bytes, with {diff} bytes, to {offset} bytes"
    )
    print("Continue? [y/N]: ", end="", flush=True)
    if sys.stdin.readline()[:1] not in ("y", "Y"):
        raise Refusal("Aborting...")
    try:
        kept = keep_tail(path, file, offset)
        _truncate(file, offset)
    except OSError as error:
        raise Refusal(f"Failed to truncate AOF: {error}") from error
    print("Successfully truncated AOF")
    print(f"The {diff} bytes that were cut off are in {kept}")
    return 0


def _truncate(file: BinaryIO, offset: int) -> None:
    file.truncate(offset)
    file.flush()
    os.fsync(file.fileno())


def keep_tail(path: str, file: BinaryIO, offset: int) -> str:
    """Copy what follows ``offset`` to a new file beside ``path``, durably; returns its name.

    An older file of that name is never overwritten. Raises ``OSError``.
    """
    kept = _free_name(f"{path}.cut-{offset}")
    file.seek(offset)
    _write_durably(kept, iter(lambda: file.read(_CHUNK), b""), file)
    return kept


def _write_durably(name: str, pieces: Iterator[bytes], like: BinaryIO) -> None:
    """Write a new file, complete or not at all, with the permissions of another one."""
    temporary = f"{name}.tmp-{os.getpid()}"
    mode = os.fstat(like.fileno()).st_mode & 0o777
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(fd, "wb") as copy:
            for piece in pieces:
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        os.rename(temporary, name)
    except OSError:
        os.unlink(temporary)
        raise
    _sync_directory(os.path.dirname(name) or ".")


def _free_name(wanted: str) -> str:
    name, number = wanted, 1
    while os.path.lexists(name):
        number += 1
        name = f"{wanted}.{number}"
    return name


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class ProgressBar:
    """A progress bar for ``size`` bytes, on the error output, if that is a terminal."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.visible = sys.stderr.isatty()

    def show(self, done: int) -> None:
        """Draw the bar anew."""
        if self.visible:
            filled = _BAR_WIDTH * done // self.size
            bar = "#" * filled + "-" * (_BAR_WIDTH - filled)
            print(f"\r[{bar}] {100 * done // self.size:3d} %", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove it."""
        if self.visible:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
