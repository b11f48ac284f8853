"""How a stream describes itself to its nodes, for people who look at workers and queues: CLIENT
ANNOUNCE, by the members of :mod:`disque_tx.worker.remote.announcing`, and ``behind``: how many jobs
wait in its queues, those with most jobs first. Originals know no such command and are left alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import threading
from collections.abc import Mapping
from typing import Any, Final

import attrs
import pyspark

from disque_tx.client.blocking.servers import PipelinedConnection
from disque_tx.client.errors import ClientError, Refused
from disque_tx.client.requests.announcements import announcement, short
from disque_tx.client.requests.encoding import Request, execute
from disque_tx.spark.checkpoint import Checkpoint
from disque_tx.spark.options import ReadOptions
from disque_tx.spark.source import lag
from disque_tx.spark.source.fetching import Fetching
from disque_tx.spark.source.lag import Waiting

_LOG: Final = logging.getLogger(__name__)
INTERVAL_S: Final = 5.0
#: How long the end of a query waits for nodes that do not answer.
_END_S: Final = 2.0
_ID_CHARACTERS: Final = 16
_SHORT: Final = 8
_QUEUES_MAX: Final = 30


@attrs.frozen
class QueryIdentity:
    """``id``: the same after a restart of the query. ``name``: for people."""

    id: str
    name: str


def identity(options: ReadOptions) -> QueryIdentity:
    """Who the query with this checkpoint is: by the ID that Spark gave it, and the option
    ``queryName``."""
    query = Checkpoint(options.checkpoint).query_id()
    digest = hashlib.sha256((query or options.checkpoint).encode()).hexdigest()
    return QueryIdentity(digest[:_ID_CHARACTERS], options.query_name or (query or digest)[:_SHORT])


def description(
    who: QueryIdentity, options: ReadOptions, held: int, behind: Mapping[str, Waiting]
) -> bytes:
    """The text. ``held``: jobs of the batch that runs."""
    largest = sorted(behind.items(), key=lambda row: (-row[1].queued, row[0]))
    names = [name.decode(errors="replace") for name in options.selection.queues]
    values: dict[str, Any] = {
        "id": who.id,
        "worker": short(f"Spark query {who.name}"),
        "host": short(platform.node()),
        "pid": os.getpid(),
        "version": f"PySpark {pyspark.__version__}",
        "slots": options.jobs_max,
        "control": False,
        "state": "taking",
        "held": held,
        "queues": [short(name) for name in names[:_QUEUES_MAX]],
        "behind": [
            {"queue": name, "queued": found.queued, "oldest_s": found.oldest_ms / 1000}
            for name, found in largest[:_QUEUES_MAX]
        ],
        "cut": max(len(names), len(largest)) > _QUEUES_MAX,
    }
    return announcement(values, ("queues", "behind"))


class QueryAnnouncer:
    """Sends it every five seconds, in a thread of its own and on connections of its own, however
    long a batch takes. ``held``: jobs of the batch that runs."""

    def __init__(self, options: ReadOptions) -> None:
        self.held = 0
        self._options = options
        self._who = identity(options)
        self._fetching = Fetching(options.cluster, options.selection, log_level=logging.DEBUG)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disque-announcing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The query ends: it is not listed any more."""
        self._stopped.set()
        self._thread.join(_END_S)

    def _run(self) -> None:
        sent = False
        while not self._stopped.wait(INTERVAL_S) and self.announce():
            sent = True
        if sent:
            self._send(b"")
        self._fetching.close()

    def announce(self) -> bool:
        """Send it now. Whether to send it again: not when all nodes refuse."""
        try:
            behind = lag.waiting(self._fetching, self._options.selection)
        except ClientError as error:
            _LOG.debug("How far the query is behind is not known. %s", error)
            return True
        return self._send(description(self._who, self._options, self.held, behind))

    def _send(self, text: bytes) -> bool:
        request = execute("CLIENT", "ANNOUNCE", text)
        try:
            return any(self._fetching.ask_each(lambda node: _taken(node, request)).values())
        except ClientError as error:
            _LOG.debug("No node lists the query. %s", error)
            return True


def _taken(node: PipelinedConnection, request: Request[Any]) -> bool:
    try:
        node.call(request)
    except Refused:
        return False
    return True
