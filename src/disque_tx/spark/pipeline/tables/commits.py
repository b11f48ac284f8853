"""The commits of a table: a file per batch, and from time to time one for all before it.

::

    TABLE/_commits/000000000131.json              what batch 131 added
    TABLE/_commits/checkpoint-000000000120.json   what batches 0 to 120 added, together

A batch is part of the table as soon as its commit has its name, which only one process can give it.
A checkpoint replaces the commits up to its number, which are removed after it was written, the
oldest first. So:

1. A reader that finds the checkpoint needs none of the commits that are being removed; one that
   does not may find some of them missing, and lists the folder again.
2. A writer whose view is older than the checkpoint could use a number that was removed. It looks
   for checkpoints after its commit has its name, and withdraws the commit if one covers it: no
   reader has read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from disque_tx.spark.errors import BadTable
from disque_tx.spark.pipeline.storage import Entry, Storage

VERSION: Final = 2
#: Version 1 had neither sizes nor checkpoints; it can still be read.
_READABLE: Final = (1, 2)
_COMMIT: Final = re.compile(r"(\d{12})\.json")
_CHECKPOINT: Final = re.compile(r"checkpoint-(\d{12})\.json")
_ATTEMPTS: Final = 10
#: A file of the table, by its path in there. Files that commits name are moved and removed, and a
#: commit may have come from anywhere with the rest of its table.
_FILE: Final = re.compile(r"dt=[^/]+/[^/]+\.parquet")
_STAGED: Final = re.compile(r"[0-9a-f]*")


@attrs.frozen
class Span:
    """Event numbers of one start of a node, from ``first`` to ``last``, of which ``events``
    exist."""

    node: str
    boot: int
    first: int
    last: int
    events: int

    def overlaps(self, other: Span) -> bool:
        """Whether both may contain the same event."""
        same = (self.node, self.boot) == (other.node, other.boot)
        return same and self.first <= other.last and other.first <= self.last


@attrs.frozen
class Commit:
    """What a batch added. ``staged``: the name of its folder. ``files``: names in there.
    ``sizes``: bytes of each file, or nothing if they were not recorded.
    ``inputs``: path, size and time of change in ms of each file that was read or rejected.
    ``replaces``: files that are no longer part of the table, because the new ones hold the same
    events. ``replaced``: files that earlier commits replaced and that still exist, and since when,
    in ms since 1970. ``at_ms``: when it was made; 0 if that was not recorded.
    """

    number: int
    staged: str
    files: list[str]
    inputs: list[tuple[str, int, int]]
    spans: list[Span]
    duplicates: int
    rejected: int
    sizes: list[int] = attrs.Factory(list)
    replaces: list[str] = attrs.Factory(list)
    replaced: list[tuple[str, int]] = attrs.Factory(list)
    at_ms: int = 0

    def text(self) -> str:
        """The commit as JSON."""
        return json.dumps({"version": VERSION, **attrs.asdict(self)}) + "\n"

    @classmethod
    def parsed(cls, text: str) -> Commit:
        """:raises ValueError: when it is not a commit."""
        fields: dict[str, Any] = json.loads(text)
        fields.pop("version")
        spans = [Span(**span) for span in fields.pop("spans")]
        inputs = [(str(path), int(size), int(ms)) for path, size, ms in fields.pop("inputs")]
        replaced = [(str(name), int(ms)) for name, ms in fields.pop("replaced", [])]
        commit = cls(spans=spans, inputs=inputs, replaced=replaced, **fields)
        commit._check_names()
        return commit

    def _check_names(self) -> None:
        removed = (name for name, _ in self.replaced)
        for name in (*self.files, *self.replaces, *removed):
            if not _FILE.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a file of a table")
        if not _STAGED.fullmatch(self.staged):
            raise ValueError(f"{self.staged!r} is not the name of a batch")

    def sized(self) -> Iterator[tuple[str, int]]:
        """The files of the commit with their sizes, -1 if they were not recorded."""
        return zip(self.files, self.sizes or [-1] * len(self.files), strict=True)


class CommitLog:
    """The commits of the table at ``root``. ``commits``: all of them, in order; a checkpoint
    replaces those before it.

    :raises BadTable: when a commit is damaged, or of another version.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage = storage
        self._root = root
        self._folder = f"{root}/_commits"
        self.commits = self._read()

    @property
    def next_number(self) -> int:
        """The number of the next commit."""
        return self.commits[-1].number + 1 if self.commits else 0

    def live(self) -> dict[str, int]:
        """The files of the table now, and their sizes, -1 if unknown."""
        files: dict[str, int] = {}
        for commit in self.commits:
            for name in commit.replaces:
                files.pop(name, None)
            files.update(commit.sized())
        return files

    def replaced(self) -> dict[str, int]:
        """The files that are no longer part of the table but still exist, and since when, in ms
        since
        1970."""
        files: dict[str, int] = {}
        for commit in self.commits:
            files.update(commit.replaced)
            files.update((name, commit.at_ms) for name in commit.replaces)
        return files

    def publish(self, commit: Commit) -> bool:
        """Publish a commit; ``False`` if another process used the number."""
        path = f"{self._folder}/{commit.number:012d}.json"
        if not self._storage.publish(path, commit.text()):
            return False
        if self._newest_checkpoint(self._storage.entries(self._folder))[0] >= commit.number:
            self._storage.remove(path)
            return False
        self.commits.append(commit)
        return True

    def checkpoint(self, kept: Iterable[str]) -> None:
        """Merge all commits into one, and remove the others. All of their files are in place.

        ``kept``: those files of :meth:`replaced` that still exist.
        """
        replaced = self.replaced()
        kept = list(kept)
        if len(self.commits) < 2:
            if not self.commits or len(kept) == len(replaced):
                return
            # There may be a checkpoint of this number already: a commit without files is one more.
            self.publish(Commit(self.next_number, "", [], [], [], 0, 0))
        live = self.live()
        whole = Commit(
            number=self.commits[-1].number,
            staged="",
            files=list(live),
            sizes=list(live.values()),
            inputs=[known for commit in self.commits for known in commit.inputs],
            spans=joined(span for commit in self.commits for span in commit.spans),
            duplicates=sum(commit.duplicates for commit in self.commits),
            rejected=sum(commit.rejected for commit in self.commits),
            replaced=[(name, replaced[name]) for name in kept],
            at_ms=self.commits[-1].at_ms,
        )
        path = f"{self._folder}/checkpoint-{whole.number:012d}.json"
        entries = self._storage.entries(self._folder)
        if self._storage.publish(path, whole.text()):
            self.commits = [whole]
        for entry in entries:  # by name, so that the oldest go first
            match = _COMMIT.fullmatch(entry.name) or _CHECKPOINT.fullmatch(entry.name)
            if match and int(match[1]) <= whole.number and entry.path != path:
                self._storage.remove(entry.path)

    # -- reading -----------------------------------------------------------------------------

    def _read(self) -> list[Commit]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._read_once()
            except _Changing:
                pass
        try:
            return self._read_once()
        except _Changing as error:
            raise BadTable(f"{error} Restore it from a copy.") from error

    def _read_once(self) -> list[Commit]:
        """:raises _Changing: when a checkpoint is made meanwhile, or commits are missing."""
        entries = self._storage.entries(self._folder)
        newest, path = self._newest_checkpoint(entries)
        commits = [self._commit(path)] if path else []
        for entry in entries:
            match = _COMMIT.fullmatch(entry.name)
            if match and int(match[1]) > newest:
                commits.append(self._commit(entry.path))
        for number, commit in enumerate(commits, max(newest, 0)):
            if commit.number != number:
                raise _Changing(f"The commit {number} of {self._root} is missing.")
        return commits

    @staticmethod
    def _newest_checkpoint(entries: Iterable[Entry]) -> tuple[int, str]:
        """The number and path of the newest checkpoint, -1 and no path if there is none."""
        found = ((_CHECKPOINT.fullmatch(entry.name), entry.path) for entry in entries)
        return max(((int(match[1]), path) for match, path in found if match), default=(-1, ""))

    def _commit(self, path: str) -> Commit:
        if self._storage.find(path) is None:
            raise _Changing(f"{path} is missing.")
        try:
            text = self._storage.read(path)
        except OSError as error:
            raise _Changing(f"{path} can't be read: {error}.") from error
        try:
            version = json.loads(text)["version"]
            if version in _READABLE:
                return Commit.parsed(text)
        except (ValueError, TypeError, KeyError) as error:
            raise BadTable(f"{path} is damaged: {error}. Restore it from a copy.") from error
        raise BadTable(
            f"{self._root} was written by another version ({version}, this one reads"
            f" {' and '.join(map(str, _READABLE))}). Use that version, or ingest the event logs"
            " again into a new folder."
        )


class _Changing(Exception):
    """The commits have changed since they were listed."""


def joined(spans: Iterable[Span]) -> list[Span]:
    """Merge adjacent spans of one start of a node."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.node, span.boot, span.first)):
        last = found[-1] if found else None
        if (
            last
            and (last.node, last.boot) == (span.node, span.boot)
            and span.first <= last.last + 1
        ):
            found[-1] = attrs.evolve(
                last, last=max(last.last, span.last), events=last.events + span.events
            )
        else:
            found.append(span)
    return found
