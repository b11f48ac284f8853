"""The file of queues that PAUSE paused: read at the start, written with every PAUSE (cluster
protocol, section 21.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.config.paths import os_error_text
from disque_tx.core.queues.pausing import Pause
from disque_tx.engine.interfaces import IFiles, OperatorLog
from disque_tx.engine.ownership import read_whole, set_aside
from disque_tx.errors import PeerError
from disque_tx.wire.files.pauses import parse, render

if TYPE_CHECKING:
    from disque_tx.core.node import Node


#: More than the file of 10,000 queues takes.
SIZE_BYTES_MAX: Final = 64 * 1024 * 1024


def pauses_path(nodes_path: str) -> str:
    """Where the file of a node is, by the one of its nodes file."""
    return f"{nodes_path}.pauses"


class PausesFile:
    """The file of one node."""

    def __init__(self, node: Node, files: IFiles, nodes_path: str, reports: OperatorLog) -> None:
        self.path = pauses_path(nodes_path)
        self._node = node
        self._files = files
        self._reports = reports

    def load(self) -> None:
        """Pause the queues again that were paused; a file that cannot be used is set aside."""
        try:
            text = read_whole(self._files, self.path, SIZE_BYTES_MAX)
            rows = [] if text is None else parse(text)
        except OSError as error:
            self._reports.warning(f"{self.path} can't be read: {os_error_text(error)}.{_GO_ON}")
            return
        except PeerError as error:
            self._set_aside(str(error))
            return
        pauses = {name: Pause(flags, who, at_s) for name, flags, who, at_s in rows}
        self._node.pausing.load(pauses)

    def _set_aside(self, why: str) -> None:
        kept = f"{self.path}.damaged-{int(self._node.wall_us) // 1_000_000}"
        try:
            set_aside(self._files, self.path, kept)
        except OSError as error:
            kept = f"{self.path}, for it can't be renamed: {os_error_text(error)}"
        self._reports.warning(
            f"The file of pauses {self.path} can't be used: {why}. It is kept as {kept}.{_GO_ON}"
        )

    def save(self) -> None:
        """Write the pauses, if there are others than in the file. A failure is logged: the queues
        are paused, but only until the node stops."""
        pausing = self._node.pausing
        if not pausing.unsaved:
            return
        pausing.unsaved = False
        try:
            rows = [(name, int(p.flags), p.who, int(p.at_s)) for name, p in pausing.kept.items()]
            self._files.replace(self.path, render(rows))
        except OSError as error:
            self._reports.warning(
                f"{self.path} can't be written: {os_error_text(error)}. What PAUSE said now is"
                " forgotten with the next stop of the node."
            )


_GO_ON = " The queues in it are not paused."
