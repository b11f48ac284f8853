"""The policies file: read at the start, written whenever the table changed (cluster protocol,
section 21.4).

A file that cannot be used is set aside under another name, never overwritten, and the node starts
without its policies: other nodes have them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.config.paths import os_error_text
from disque_tx.engine.interfaces import IFiles, Reports
from disque_tx.errors import PeerError
from disque_tx.wire.policiesfile import parse, render

if TYPE_CHECKING:
    from disque_tx.core.node import Node

#: What is added to the path of the nodes file, which belongs to one node alone, as this one does.
SUFFIX: Final = ".policies"
#: More than the largest table takes.
SIZE_BYTES_MAX: Final = 1024 * 1024 * 1024


class PoliciesFile:
    """The file of one node. ``nodes_path``: where its nodes file is."""

    def __init__(self, node: Node, files: IFiles, nodes_path: str, reports: Reports) -> None:
        self.path = nodes_path + SUFFIX
        self._node = node
        self._files = files
        self._reports = reports
        self._in_the_way = ""

    def load(self) -> None:
        """Read the file, if there is one; what is wrong with it is logged."""
        try:
            text = self._read()
        except OSError as error:
            self._in_the_way = os_error_text(error)
            self._reports.warning(
                f"The policies file {self.path} can't be read: {self._in_the_way}. The node starts"
                " without its policies, and takes no changes of policies."
            )
            return
        if not text:
            return
        wall_s = int(self._node.wall_us) // 1_000_000
        try:
            registers, greatest = parse(text)
        except PeerError as error:
            self._set_aside(str(error), wall_s)
            return
        self._node.policy_table.load(registers, greatest, wall_s)

    def _read(self) -> bytes:
        try:
            file = self._files.open(self.path)
        except FileNotFoundError:
            return b""
        try:
            return bytes(file.read(0, min(file.size(), SIZE_BYTES_MAX)))
        finally:
            file.close()

    def _set_aside(self, why: str, wall_s: int) -> None:
        kept = f"{self.path}.damaged-{wall_s}"
        start = f"The policies file {self.path} can't be used: {why}."
        try:
            self._files.rename(self.path, kept)
            self._files.sync_folder(kept)
        except OSError as error:
            self._in_the_way = f"it could not be set aside: {os_error_text(error)}"
            self._reports.warning(
                f"{start} It can't be renamed to {kept} either: {os_error_text(error)}. The node"
                " starts without its policies, and takes no changes of policies."
            )
            return
        self._reports.warning(
            f"{start} It is kept as {kept}, and the node starts without its policies. It gets"
            " those of the cluster from other nodes."
        )

    def save(self) -> None:
        """Write the table, so that it survives a power failure; ``OSError`` when that failed."""
        if self._in_the_way:
            raise OSError(self._in_the_way)
        table = self._node.policy_table
        registers = table.registers
        self._files.replace(self.path, render(registers.all(), registers.greatest))
        table.unsaved = False
