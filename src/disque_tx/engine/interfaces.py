"""What the engine needs of the world around it: files, log lines, work for later. Small interfaces,
provided by the services on a real machine, by the simulator, and by tests in memory.
"""
# ruff: noqa: N805  the methods of an interface are written without self

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from zope.interface import Interface


class IFile(Interface):
    """An open file that grows at its end.

    Every method raises ``OSError`` when the disk refuses. ``sync`` and ``close`` may be called in
    a thread while another one appends.
    """

    def size() -> int:
        """Bytes in the file."""

    def read(offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``; none at the end of the file."""

    def append(data: bytes) -> None:
        """Put all of ``data`` at the end; after an error a part of it may be there."""

    def truncate(size: int) -> None:
        """Cut off what is behind ``size`` bytes."""

    def sync() -> None:
        """What was appended survives a power failure."""

    def lock() -> None:
        """Lock the file until it is closed; ``BlockingIOError`` when another process has locked
        it."""

    def is_at(path: str) -> bool:
        """Whether the name ``path`` is this file's."""

    def close() -> None:
        """Give the file back to the system, once."""


class IFiles(Interface):
    """The files of a node. Every method raises ``OSError`` when the system refuses."""

    def open(path: str, may_be_new: bool = False) -> IFile:
        """The file as it is; when there is none, a new one or ``FileNotFoundError``."""

    def create(path: str) -> IFile:
        """A new and empty file, in place of any other of that name."""

    def rename(old: str, new: str) -> None:
        """Give a file another name, in place of any other of that name; see ``sync_folder``."""

    def remove(path: str) -> None:
        """Remove the file, if it is there."""

    def sync_folder(path: str) -> None:
        """The names in the folder of the file ``path`` survive a power failure."""

    def replace(path: str, data: bytes) -> None:
        """The file holds ``data``: after a crash either the old or the new content is there."""


class OperatorLog(Protocol):
    """Lines for the operator, by importance."""

    def verbose(self, text: str) -> None:
        """More than an operator normally wants."""

    def notice(self, text: str) -> None:
        """What an operator wants to know."""

    def warning(self, text: str) -> None:
        """What an operator must know."""


class Scheduler(Protocol):
    """Work that is done later, in the thread of the node, or meanwhile, in another one."""

    def soon(self, work: Callable[[], object]) -> Callable[[], object]:
        """Do this once the input that is there now is served; returns what cancels it."""

    def in_background(
        self, work: Callable[[], object], done: Callable[[Exception | None], object]
    ) -> None:
        """Do this in another thread. ``done`` is called in the thread of the node, perhaps at once,
        with ``None`` or the reason why it failed."""
