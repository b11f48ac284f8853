"""Files beside the nodes file: the shared tables, written whenever one has changed, and the queues
that PAUSE paused, written with every PAUSE (cluster protocol, section 21.4). Both are read at the
start.

A file that cannot be used is set aside under another name, never overwritten, and the node starts
without what it holds: other nodes have the tables, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.config.paths import os_error_text
from disque_tx.core.queues.pausing import Pause
from disque_tx.core.tables.table import SharedTable
from disque_tx.engine.interfaces import IFiles, OperatorLog
from disque_tx.engine.ownership import read_whole, set_aside
from disque_tx.errors import PeerError
from disque_tx.wire.files import pauses, tables
from disque_tx.wire.files.tables import POLICIES, SCHEDULES

if TYPE_CHECKING:
    from disque_tx.core.node import Node

#: More than the largest table takes, and more than the file of 10,000 paused queues.
SIZE_BYTES_MAX: Final = 1024 * 1024 * 1024
PAUSES_BYTES_MAX: Final = 64 * 1024 * 1024
_GO_ON: Final = " The queues in it are not paused."


def table_path(nodes_path: str, content: bytes) -> str:
    """Where the file of one table of a node is."""
    return f"{nodes_path}.{content.lower().decode()}"


def pauses_path(nodes_path: str) -> str:
    """Where the file of a node is, by the one of its nodes file."""
    return f"{nodes_path}.pauses"


def history_path(nodes_path: str) -> str:
    """Where the file of what happened at a node is, by the one of its nodes file."""
    return f"{nodes_path}.history"


class TableFile:
    """The file of one table of one node. ``content``: what it holds, in one word. ``nodes_path``:
    where the nodes file is; the name of that word is added to it, for it belongs to one node alone,
    as this one does."""

    def __init__(
        self,
        node: Node,
        table: SharedTable,
        content: bytes,
        files: IFiles,
        nodes_path: str,
        reports: OperatorLog,
    ) -> None:
        self._content = content
        self._what = content.lower().decode()
        self.path = table_path(nodes_path, content)
        self._node = node
        self._table = table
        self._files = files
        self._reports = reports
        self._in_the_way = ""

    def load(self) -> None:
        """Read the file, if there is one; what is wrong with it is logged."""
        try:
            text = read_whole(self._files, self.path, SIZE_BYTES_MAX)
        except OSError as error:
            self._in_the_way = os_error_text(error)
            self._reports.warning(
                f"The {self._what} file {self.path} can't be read: {self._in_the_way}. The node"
                f" starts without its {self._what}, and takes no changes of {self._what}."
            )
            return
        if not text:
            return
        wall_s = int(self._node.wall_us) // 1_000_000
        try:
            registers, generation, greatest = tables.parse(text, self._content)
        except PeerError as error:
            self._set_aside(str(error), wall_s)
            return
        self._table.load(registers, greatest, wall_s, generation)

    def _set_aside(self, why: str, wall_s: int) -> None:
        kept = f"{self.path}.damaged-{wall_s}"
        what = self._what
        start = f"The {what} file {self.path} can't be used: {why}."
        try:
            set_aside(self._files, self.path, kept)
        except OSError as error:
            self._in_the_way = f"it could not be set aside: {os_error_text(error)}"
            self._reports.warning(
                f"{start} It can't be renamed to {kept} either: {os_error_text(error)}. The node"
                f" starts without its {what}, and takes no changes of {what}."
            )
            return
        self._reports.warning(
            f"{start} It is kept as {kept}, and the node starts without its {what}. It gets those"
            " of the cluster from other nodes."
        )

    def save(self) -> None:
        """Write the table, so that it survives a power failure; ``OSError`` when that failed."""
        if self._in_the_way:
            raise OSError(self._in_the_way)
        registers = self._table.registers
        generation, greatest = registers.generation, registers.greatest
        text = tables.render(registers.all(), greatest, self._content, generation)
        self._files.replace(self.path, text)
        self._table.unsaved = False


class PausesFile:
    """The file of the queues that PAUSE paused at one node."""

    def __init__(self, node: Node, files: IFiles, nodes_path: str, reports: OperatorLog) -> None:
        self.path = pauses_path(nodes_path)
        self._node = node
        self._files = files
        self._reports = reports

    def load(self) -> None:
        """Pause the queues again that were paused; a file that cannot be used is set aside."""
        try:
            text = read_whole(self._files, self.path, PAUSES_BYTES_MAX)
            rows = [] if text is None else pauses.parse(text)
        except OSError as error:
            self._reports.warning(f"{self.path} can't be read: {os_error_text(error)}.{_GO_ON}")
            return
        except PeerError as error:
            self._set_aside(str(error))
            return
        paused = {name: Pause(flags, who, at_s) for name, flags, who, at_s in rows}
        self._node.pausing.load(paused)

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
            self._files.replace(self.path, pauses.render(rows))
        except OSError as error:
            self._reports.warning(
                f"{self.path} can't be written: {os_error_text(error)}. What PAUSE said now is"
                " forgotten with the next stop of the node."
            )


class TableFiles:
    """The files of all tables of one node. ``policies``, ``schedules``: one of them each.
    ``pauses``: which queues PAUSE paused, at this node alone."""

    def __init__(self, node: Node, files: IFiles, nodes_path: str, reports: OperatorLog) -> None:
        places = (files, nodes_path, reports)
        self.policies = TableFile(node, node.policy_table, POLICIES, *places)
        self.schedules = TableFile(node, node.timetable, SCHEDULES, *places)
        self.pauses = PausesFile(node, *places)

    def load(self) -> None:
        """Read those that are there."""
        self.policies.load()
        self.schedules.load()
        self.pauses.load()
