"""Requests to whichever node serves.

A request that could not be sent, or was refused because the node leaves or loads, goes to another
node. One that was sent and not answered goes to another node only if it is in :data:`REPEATABLE`;
otherwise the caller is told that nobody knows (:class:`OutcomeUnknown`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar

import attrs

from disque_tx.client import replies
from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.connection import NodeConnection, Options
from disque_tx.client.errors import (
    AuthenticationRefused,
    CannotConnect,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    OutcomeUnknown,
    Refused,
)
from disque_tx.client.nodes import Nodes

#: Requests that do no harm when they are executed twice, at different nodes: those that only look,
#: GETJOB (what was delivered to nobody comes back after its RETRY), and acknowledgements and
#: postponements, which the second time change nothing.
REPEATABLE: Final = frozenset(
    ("ACKJOB", "FASTACK", "GETJOB", "HELLO", "INFO", "JSCAN", "PING")
    + ("QLEN", "QPEEK", "QSCAN", "QSTAT", "SHOW", "WORKING")
)
_T = TypeVar("_T")


@attrs.frozen
class Surroundings:
    """What a test replaces: clock, rest and chance."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    random: Random = attrs.field(factory=Random)


class Session:
    """Connections to the nodes of one cluster. May be used by several threads, and after a fork.

    ``patience_s``: how long a request looks for a node that serves, from its first failure on.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: Options,
        learning: bool = True,
        patience_s: float = 20.0,
        surroundings: Surroundings | None = None,
    ) -> None:
        around = surroundings or Surroundings()
        self._now_s, self._sleep = around.now_s, around.sleep
        self._nodes = Nodes(seeds.addresses, around.random, learning)
        self._options = options
        self._patience_s = patience_s
        self._lock = threading.RLock()
        self._idle: dict[Address, list[NodeConnection]] = defaultdict(list)
        self._process = os.getpid()
        self._current: Address | None = None

    # -- requests ----------------------------------------------------------------------------

    def call(
        self,
        *words: Any,
        shape: Callable[[Any], _T],
        wait_s: float | None = 0.0,
        repeat: bool | None = None,
    ) -> _T:
        """See :meth:`request`; the reply alone."""
        return self.request(*words, shape=shape, wait_s=wait_s, repeat=repeat)[1]

    def request(
        self,
        *words: Any,
        shape: Callable[[Any], _T],
        wait_s: float | None = 0.0,
        repeat: bool | None = None,
    ) -> tuple[Address, _T]:
        """Have a request executed by some node; see :meth:`NodeConnection.call`.

        ``repeat``: whether it may be executed twice, by default whether it is in
        :data:`REPEATABLE`.

        :raises CannotConnect: no node served in time.
        :raises OutcomeUnknown: it may or may not have been executed.
        """
        repeatable = words[0] in REPEATABLE if repeat is None else repeat
        search = _Search(self._now_s, self._patience_s)
        while True:
            connection = self._connected(search, fresh=not repeatable)
            try:
                value = connection.call(words, shape, wait_s)
            except ConnectionLost as lost:
                self._leave(connection.address)
                if not repeatable:
                    raise OutcomeUnknown(str(words[0]), lost) from lost
                search.failed(lost.address, lost)
            except (Leaving, Loading) as refused:
                connection.close()
                self._leave(connection.address)
                search.failed(refused.address, refused)
            except Refused:
                self._give_back(connection)
                raise
            else:
                self._give_back(connection)
                return connection.address, value

    def call_at(self, address: Address, *words: Any, shape: Callable[[Any], _T]) -> _T:
        """Have a request executed by this node, now or not at all.

        :raises ConnectionLost: it cannot be reached, or the reply did not come.
        """
        try:
            connection = self._taken(address, True) or self._open(address)
        except ConnectionLost:
            self._leave(address)
            raise
        try:
            value = connection.call(words, shape)
        except ConnectionLost:
            self._leave(address)
            raise
        except Refused:
            self._give_back(connection)
            raise
        self._give_back(connection)
        return value

    def call_near(self, address: Address, *words: Any, shape: Callable[[Any], _T]) -> _T:
        """Have a request executed by this node, or by another one if this cannot be reached."""
        try:
            return self.call_at(address, *words, shape=shape)
        except ConnectionLost as lost:
            if lost.sent and words[0] not in REPEATABLE:
                raise OutcomeUnknown(str(words[0]), lost) from lost
        return self.call(*words, shape=shape)

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Address:
        """The node of the moment, or one to begin with."""
        if self._current is None:
            self._give_back(self._connected(_Search(self._now_s, self._patience_s), fresh=True))
        assert self._current is not None
        return self._current

    def addresses(self) -> list[Address]:
        """All nodes of the cluster, by what the node of the moment now says of them."""
        address, said = self.request("HELLO", shape=replies.hello)
        with self._lock:
            self._nodes.learn(address, said)
            return self._nodes.addresses()

    def follow(self, id_prefix: str) -> None:
        """Prefer the node whose ID begins like this, if it is known and well."""
        with self._lock:
            address = self._nodes.made(id_prefix, self._now_s())
            if address is not None:
                self._current = address

    def set_password(self, password: str) -> None:
        """From now on connect with this password."""
        self.close()
        self._options = attrs.evolve(self._options, password=password)

    def close(self) -> None:
        """Close all connections that are not in use. New requests open new ones."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()

    # -- connections -------------------------------------------------------------------------

    def _connected(self, search: _Search, fresh: bool) -> NodeConnection:
        """A connection to the current node, or to the next best one that can be reached.

        ``fresh``: it must be certain that the node has not hung up meanwhile.
        """
        moved = False
        while True:
            address = self._current or self._pick()
            connection = self._taken(address, fresh)
            if connection is not None:
                return connection
            try:
                connection = self._open(address)
            except AuthenticationRefused:
                raise
            except ClientError as error:
                self._leave(address)
                search.failed(str(address), error)
                continue
            with self._lock:
                if not moved and self._nodes.has_better(address, self._now_s()):
                    moved, self._current = True, None
                    connection.close()
                    continue
                self._current = address
            return connection

    def _pick(self) -> Address:
        with self._lock:
            address, wait_s = self._nodes.pick(self._now_s())
        if wait_s > 0:
            self._sleep(wait_s)
        return address

    def _open(self, address: Address) -> NodeConnection:
        """A new connection, with what its node says about all nodes taken in."""
        connection = NodeConnection(address, self._options)
        try:
            said = connection.call(("HELLO",), replies.hello)
        except ClientError:
            connection.close()
            raise
        with self._lock:
            self._nodes.learn(address, said)
            self._nodes.served(address)
        return connection

    def _taken(self, address: Address, fresh: bool) -> NodeConnection | None:
        """An idle connection, if there is one that is still good."""
        if os.getpid() != self._process:
            self._forked()
        idle = self._idle[address]
        while idle:
            try:
                connection = idle.pop()
            except IndexError:
                return None
            if not fresh or connection.is_quiet():
                return connection
            connection.close()
        return None

    def _give_back(self, connection: NodeConnection) -> None:
        self._idle[connection.address].append(connection)

    def _leave(self, address: Address) -> None:
        """It does not serve: other connections to it are of no use either."""
        with self._lock:
            self._nodes.failed(address, self._now_s())
            if self._current == address:
                self._current = None
            for connection in self._idle.pop(address, []):
                connection.close()

    def _forked(self) -> None:
        """The open connections belong to the parent process."""
        self._lock = threading.RLock()
        self._idle = defaultdict(list)
        self._process = os.getpid()


class _Search:
    """How long one request has looked for a node that serves, and what it met."""

    __slots__ = ("_deadline_s", "_now_s", "_patience_s", "_tried")

    def __init__(self, now_s: Callable[[], float], patience_s: float) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._deadline_s: float | None = None
        self._tried: dict[str, str] = {}

    def failed(self, address: str, error: ClientError) -> None:
        """Note a failure; raise when there were enough."""
        self._tried[address] = error.reason if isinstance(error, ConnectionLost) else str(error)
        if self._deadline_s is None:
            self._deadline_s = self._now_s() + self._patience_s
        if self._now_s() >= self._deadline_s:
            if isinstance(error, Refused):
                raise error
            raise CannotConnect(self._tried) from error
