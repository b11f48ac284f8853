"""Surplus processes after ``processes`` was lowered: drained, then removed.

Their nodes may have jobs. So they are started with the others, and leave the cluster: they take no
jobs, and give those they have to whoever asks. When one is empty it is ended, the others forget its
node, and its files are removed; until then, every start of the daemon finds it again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from disque_tx.config.paths import os_error_text
from disque_tx.engine.ownership import log_files
from disque_tx.engine.processes import node_files
from disque_tx.services.processes.settings import log_path, numbers_found, own_path, share

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.log import DaemonLog


def surplus(settings: Settings, wanted: list[int]) -> list[int]:
    """The numbers of the processes that are found and surplus."""
    return [number for number in numbers_found(settings) if number not in wanted]


def remove(settings: Settings, number: int, log: DaemonLog) -> None:
    """Remove the files of a process that has ended empty; a log that was not in use stays."""
    mine = share(settings, number, 1)
    logs = log_files(log_path(mine)) if settings.appendonly else []
    for path in node_files(mine.cluster_config_file, logs):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warning(f"{path} could not be removed: {os_error_text(error)}")
    if number:
        for folder in {mine.dir, os.path.dirname(own_path(settings.cluster_config_file, number))}:
            try:
                os.rmdir(folder)
            except OSError:
                pass  # other files are kept there, such as logs of events
