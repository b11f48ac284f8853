"""Jepsen's total queue test: compares the values that clients added with those they received."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter

from tests.acceptance.cluster.node import Node
from tests.acceptance.load import GONE
from tests.acceptance.resp import Connection, ReplyError

_PATIENCE_MS = 200
_CLIENT_TIMEOUT_S = 2.0


class TotalQueue:
    """One client per node adds and fetches values, with equal probability.

    ``attempted``: values that may be in the queue. ``accepted``: those that ADDJOB confirmed.
    ``delivered``: value → number of deliveries, recorded before the acknowledgement is sent.
    """

    def __init__(self, nodes: list[Node], queue: str, replicate: int, retry_s: int) -> None:
        self.attempted: set[int] = set()
        self.accepted: set[int] = set()
        self.delivered: Counter[int] = Counter()
        self._nodes = nodes
        self._queue = queue
        self._options = ("REPLICATE", replicate, "RETRY", retry_s)
        self._values = itertools.count()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(node,)) for node in nodes]

    def begin(self) -> None:
        """Start the clients."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop the clients."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _client(self, node: Node) -> None:
        while not self._stopping.is_set():
            try:
                connection = Connection((node.ip, node.port), _CLIENT_TIMEOUT_S)
            except OSError:
                time.sleep(0.1)
                continue
            try:
                while not self._stopping.is_set():
                    random.choice((self._add, self.take))(connection)
            except GONE:
                time.sleep(0.1)
            except ReplyError as error:
                if not str(error).startswith("LEAVING"):
                    raise
                time.sleep(0.1)
            finally:
                connection.close()

    def _add(self, connection: Connection) -> None:
        with self._lock:
            value = next(self._values)
            self.attempted.add(value)
        connection.send("ADDJOB", self._queue, value, _PATIENCE_MS, *self._options)
        if not isinstance(connection.read(), ReplyError):
            with self._lock:
                self.accepted.add(value)
        time.sleep(0.002)

    def take(self, connection: Connection, count: int = 1) -> int:
        """Fetch and acknowledge; returns the number of jobs."""
        words = ("TIMEOUT", _PATIENCE_MS, "COUNT", count, "FROM", self._queue)
        jobs = connection.call("GETJOB", *words) or []
        with self._lock:
            self.delivered.update(int(body) for _queue, _id, body in jobs)
        if jobs:
            connection.call("ACKJOB", *[job_id for _queue, job_id, _body in jobs])
        return len(jobs)

    def drain(self, silence_s: float, timeout_s: float) -> None:
        """Fetch all that is left, until no node has delivered anything for ``silence_s``."""
        connections = [node.client() for node in self._nodes]
        end = time.monotonic() + timeout_s
        deadline = time.monotonic() + silence_s
        while time.monotonic() < min(deadline, end):
            # From all nodes in turn, so that one empty node does not end the loop.
            if sum(self.take(connection, 100) for connection in connections):
                deadline = time.monotonic() + silence_s

    # -- the result --------------------------------------------------------------------------

    @property
    def lost(self) -> set[int]:
        """Accepted, but never delivered."""
        return self.accepted - set(self.delivered)

    @property
    def unexpected(self) -> set[int]:
        """Delivered, but never added."""
        return set(self.delivered) - self.attempted

    def report(self) -> str:
        """All counts in one line."""
        deliveries = self.delivered.total()
        recovered = len(set(self.delivered) - self.accepted)
        return (
            f"total queue: {len(self.attempted)} attempted, {len(self.accepted)} accepted,"
            f" {deliveries} deliveries, {deliveries - len(self.delivered)} duplicates,"
            f" {recovered} delivered though not accepted, {len(self.lost)} lost,"
            f" {len(self.unexpected)} unexpected"
        )
