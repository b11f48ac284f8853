"""The seams of the server: small interfaces, each with a double for tests and the simulator."""
# ruff: noqa: N805  the methods of an interface are written without self

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IProtocolFactory
from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from disque_tx.services.pump import Pump
    from disque_tx.services.root import NodeRoot


class IClock(Interface):
    """The two clocks of a node."""

    def steady_ms() -> int:
        """Milliseconds of a clock that never jumps; its zero means nothing."""

    def wall_us() -> int:
        """Microseconds since 1970, as the system believes."""


class ITurn(Interface):
    """A batch of input that is executed first and answered afterwards."""

    pump: Pump = Attribute("What moves requests in and replies out.")

    def turn() -> AbstractContextManager[object]:
        """The block in which input is executed; behind it the log is written, then answered."""


class IClientProtocol(Interface):
    """A protocol that listeners can speak; found by ``twisted.plugin.getPlugins``.

    The directive ``listen <name> <endpoint>`` puts it to use.
    """

    name: str = Attribute("The word in the ``listen`` directive.")
    description: str = Attribute("One line for people.")

    def factory(root: NodeRoot) -> IProtocolFactory:
        """A factory of protocols for the node of ``root``; ``root.node_service`` has the node's
        operations as Deferreds."""


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
        """Nobody else can lock the file until it is closed; ``BlockingIOError`` when somebody
        has."""

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
