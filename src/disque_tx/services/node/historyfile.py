"""The file of what happened at a node, beside its nodes file: written every minute, if there is
anything new, and at the stop; read at the start.

A file that cannot be used is set aside under another name, and the node starts without what it
holds: nothing depends on it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from disque_tx.commands.base.actions import Action
from disque_tx.config.paths import os_error_text
from disque_tx.core.counting.answers import JobCount
from disque_tx.core.statistics.history import Stored
from disque_tx.core.statistics.rings import POINTS_MAX, WIDTH
from disque_tx.engine.interfaces import IFiles, OperatorLog
from disque_tx.engine.ownership import read_whole, set_aside
from disque_tx.engine.sidefiles import history_path
from disque_tx.errors import PeerError
from disque_tx.wire.files import history
from disque_tx.wire.files.history import ActionRow, RecordRow

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server

#: More than the file can have: a longer one is damaged.
SIZE_BYTES_MAX: Final = 16 * 1024 * 1024
#: Whether this machine has the order of bytes that the file has.
_LITTLE: Final = array("H", [1]).tobytes()[0] == 1
_GO_ON: Final = "The node starts without its history."


class HistoryFile:
    """The file of one node."""

    def __init__(
        self, server: Server, files: IFiles, nodes_path: str, reports: OperatorLog
    ) -> None:
        self.path = history_path(nodes_path)
        self._server = server
        self._files = files
        self._reports = reports

    def load(self) -> None:
        """Read the file, if there is one; what is wrong with it is logged."""
        try:
            text = read_whole(self._files, self.path, SIZE_BYTES_MAX)
            if text is None:
                return
            actions, records = history.parse(text)
            rows = [_stored(record) for record in records]
        except OSError as error:
            why = os_error_text(error)
            self._reports.warning(f"The history {self.path} can't be read: {why}. {_GO_ON}")
            return
        except PeerError as error:
            self._set_aside(str(error))
            return
        self._server.actions.load(list(map(_action, actions)))
        self._server.node.state.history.load(rows)

    def _set_aside(self, why: str) -> None:
        kept = f"{self.path}.damaged-{int(self._server.node.wall_us) // 1_000_000}"
        try:
            set_aside(self._files, self.path, kept)
        except OSError as error:
            kept = f"{self.path}, for it can't be renamed: {os_error_text(error)}"
        self._reports.warning(
            f"The history {self.path} can't be used: {why}. It is kept as {kept}. {_GO_ON}"
        )

    def is_unsaved(self) -> bool:
        """Whether something happened since it was written."""
        return self._server.actions.unsaved or self._server.node.state.history.unsaved

    def snapshot(self) -> Callable[[], None]:
        """Copy what there is now. The function that is returned writes it, in any thread: it raises
        ``OSError`` if that fails."""
        server, files, path = self._server, self._files, self.path
        server.actions.unsaved = False
        actions: list[ActionRow] = [
            (int(one.at_ms), one.command, one.who, one.what, one.refused, int(one.jobs.value))
            for one in server.actions.entries
        ]
        stored = server.node.state.history.stored()

        def write() -> None:
            files.replace(path, history.render(actions, map(_row, stored)))

        return write

    def failed(self, error: OSError) -> None:
        """Log that the file could not be written; that is tried again."""
        self._server.actions.unsaved = True
        why = os_error_text(error)
        self._reports.warning(f"The history {self.path} can't be written: {why}.")


def _action(row: ActionRow) -> Action:
    at_ms, command, who, what, refused, jobs = row
    return Action(at_ms, command, who, what, refused, JobCount(jobs))


def _row(stored: Stored) -> RecordRow:
    name, weight, rings = stored
    return name, weight, [_little_endian(ring).tobytes() for ring in rings]


def _stored(row: RecordRow) -> Stored:
    """A record of the file. Raises ``PeerError`` if it is none."""
    name, weight, rings = row
    points: list[array[int]] = []
    for most, data in zip(POINTS_MAX, rings, strict=True):
        if len(data) % (2 * WIDTH) or len(data) > 2 * WIDTH * most:
            raise PeerError("a record has a part of a point, or too many points")
        ring = _little_endian(array("H", data))
        slots = [high << 16 | low for high, low in zip(ring[::WIDTH], ring[1::WIDTH], strict=True)]
        if any(after <= before for before, after in pairwise(slots)):
            raise PeerError("the points of a record are not in order")
        points.append(ring)
    return name, weight, points


def _little_endian(ring: array[int]) -> array[int]:
    if not _LITTLE:
        ring = ring[:]
        ring.byteswap()
    return ring
