"""Requests to whichever node serves.

A request that could not be sent, or was refused because the node leaves or loads, goes to another
node. One that was sent and not answered goes to another node only if it is repeatable; otherwise
the caller is told that nobody knows (:class:`OutcomeUnknown`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import attrs

from disque_tx.client import requests
from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.blocking.connection import NodeConnection
from disque_tx.client.errors import (
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    OutcomeUnknown,
    Refused,
)
from disque_tx.client.nodes import Nodes, Search
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import Request

_T = TypeVar("_T")
_V = TypeVar("_V")


@attrs.frozen
class Surroundings:
    """What a test replaces: clock, rest and chance; and ``notice``: is told, for people, when the
    client begins to look for another node."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    random: Random = attrs.field(factory=Random)
    notice: Callable[[str], object] | None = None


class BlockingSession:
    """Connections to the nodes of one cluster. May be used by several threads, and after a fork.

    ``patience_s``: how long a request looks for a node that serves, from its first failure on.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: ConnectionOptions,
        learning: bool = True,
        patience_s: float = 20.0,
        surroundings: Surroundings | None = None,
    ) -> None:
        around = surroundings or Surroundings()
        self._now_s, self._sleep = around.now_s, around.sleep
        self._notice = around.notice
        self._nodes = Nodes(seeds.addresses, around.random, learning)
        self._options = options
        self._patience_s = patience_s
        self._lock = threading.RLock()
        self._idle: dict[Address, list[NodeConnection]] = defaultdict(list)
        self._process = os.getpid()
        self._current: Address | None = None

    # -- requests ----------------------------------------------------------------------------

    def request(self, request: Request[_T]) -> _T:
        """See :meth:`locate`; the reply alone."""
        return self.locate(request)[1]

    def locate(self, request: Request[_T]) -> tuple[Address, _T]:
        """Have a request executed by some node; see :meth:`NodeConnection.call`. Returns the
        address of the node that answered, and the reply.

        :raises CannotConnect: no node served in time.
        :raises OutcomeUnknown: it may or may not have been executed.
        """
        return self._served(request, lambda connection: connection.call(request))

    def request_all(self, requests: Sequence[Request[_T]]) -> list[_T]:
        """Have requests that are alike, repeatable, and do not wait executed by one node, in one
        round trip."""
        if not requests:
            return []
        return self._served(requests[0], lambda connection: connection.call_all(requests))[1]

    def _served(
        self, request: Request[Any], call: Callable[[NodeConnection], _V]
    ) -> tuple[Address, _V]:
        """See :meth:`locate`; ``call``: makes it on a connection."""
        search = Search(self._now_s, self._patience_s, self._notice)
        while True:
            connection = self._connected(search, fresh=not request.repeatable)
            try:
                value = call(connection)
            except ConnectionLost as lost:
                self._leave(connection.address)
                if not request.repeatable:
                    raise OutcomeUnknown(request.name, lost) from lost
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

    def request_at(self, address: Address, request: Request[_T]) -> _T:
        """Have a request executed by this node, now or not at all.

        :raises ConnectionLost: it cannot be reached, or the reply did not come.
        """
        try:
            connection = self._taken(address, True) or self._open(address)
        except ConnectionLost:
            self._leave(address)
            raise
        try:
            value = connection.call(request)
        except ConnectionLost:
            self._leave(address)
            raise
        except Refused:
            self._give_back(connection)
            raise
        self._give_back(connection)
        return value

    def request_near(self, address: Address, request: Request[_T]) -> _T:
        """Have a request executed by this node, or by another one if this cannot be reached."""
        try:
            return self.request_at(address, request)
        except ConnectionLost as lost:
            if lost.sent and not request.repeatable:
                raise OutcomeUnknown(request.name, lost) from lost
        return self.request(request)

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Address:
        """The node of the moment, or one to begin with."""
        if self._current is None:
            search = Search(self._now_s, self._patience_s, self._notice)
            connection = self._connected(search, fresh=True)
            self._give_back(connection)
            return connection.address
        return self._current

    def addresses(self) -> list[Address]:
        """All nodes of the cluster, by what the node of the moment now says of them."""
        address, said = self.locate(requests.hello())
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

    def _connected(self, search: Search, fresh: bool) -> NodeConnection:
        """A connection to the current node, or to the next best one that can be reached.

        ``fresh``: it must be certain that the node has not hung up meanwhile.
        """
        moved = False
        while True:
            address = self._current or self._pick()
            connection = self._taken(address, fresh)
            if connection is not None:
                # It may be one that :meth:`request_at` has opened.
                self._current = address
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
            said = connection.call(requests.hello())
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
