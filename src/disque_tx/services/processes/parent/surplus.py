"""Surplus processes after ``processes`` was lowered: drained, then removed.

Their nodes may have jobs. So they are started with the others, and leave the cluster: they take no
jobs, and give those they have to whoever asks. When one is empty it is ended, the others forget its
node, and its files are removed; until then, every start of the daemon finds it again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from disque_tx.config.paths import os_error_text
from disque_tx.engine.aof.queued import path_of as queued_path
from disque_tx.engine.pausesfile import pauses_path
from disque_tx.engine.tablefile import table_path
from disque_tx.services.processes.settings import log_path, numbers_found, own_path, share
from disque_tx.wire.files.tables import POLICIES, SCHEDULES

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog

#: Beside the nodes file of a node that leaves because its process is surplus.
_MARK: Final = ".leaving"
#: How often in a row it must report that it is empty.
_EMPTY_REPORTS: Final = 2
#: How long to wait until the remaining processes know its nodes.
_TEACHING_S: Final = 15.0


def surplus(settings: Settings, wanted: list[int]) -> list[int]:
    """The numbers of the processes that are found and surplus."""
    return [number for number in numbers_found(settings) if number not in wanted]


def mark_path(mine: Settings) -> str:
    """What shows that a node leaves because its process is surplus: no operator asked for it."""
    return mine.cluster_config_file + _MARK


class Emptying:
    """One surplus process, by its reports."""

    def __init__(self, now_s: float) -> None:
        self._since_s = now_s
        self._empty = 0

    def may_end(self, report: dict[str, Any], others: list[dict[str, Any]], now_s: float) -> bool:
        """Whether it is empty, and the others know the nodes that it knows or had time enough."""
        self._empty = self._empty + 1 if report["work"] == 0 else 0
        known = all(other.get("nodes", 0) >= report["nodes"] for other in others)
        return self._empty >= _EMPTY_REPORTS and (known or now_s - self._since_s > _TEACHING_S)


def _files(settings: Settings, mine: Settings) -> list[str]:
    """All that a process has written and that a later one of this number must not find, such as
    policies that were deleted since. The nodes file is the last but one: as long as that is there,
    the next start goes on with the rest."""
    nodes = mine.cluster_config_file
    tables = [table_path(nodes, POLICIES), table_path(nodes, SCHEDULES), pauses_path(nodes)]
    paths = [*tables, nodes, mark_path(mine)]
    if settings.appendonly:
        log = log_path(mine)
        paths = [log, queued_path(log), *paths]
    return paths


def remove(settings: Settings, number: int, log: DaemonLog) -> None:
    """Remove the files of a process that has ended empty; a log that was not in use stays."""
    for path in _files(settings, share(settings, number, 1)):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning(f"{path} could not be removed: {os_error_text(error)}")
    if number:
        mine = share(settings, number, 1)
        for folder in {mine.dir, os.path.dirname(own_path(settings.cluster_config_file, number))}:
            try:
                os.rmdir(folder)
            except OSError:
                pass  # other files are kept there, such as logs of events
