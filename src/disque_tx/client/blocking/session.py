"""Executes requests at whichever node answers, for the blocking client.

A request that could not be sent, or was refused because the node leaves or loads, goes to another
node. One that was sent and not answered goes to another node only if it is repeatable; otherwise
it raises :class:`OutcomeUnknown`.
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

from disque_tx.client.addresses import Address, Seeds
from disque_tx.client.blocking.connection import NodeConnection
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import (
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    Leaving,
    Loading,
    NameNotFound,
    OutcomeUnknown,
    Refused,
)
from disque_tx.client.nodes import LOOKUP_PAUSE_S, Nodes, Search
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.resolving import resolve
from disque_tx.client.steps import tracing

_T = TypeVar("_T")
_V = TypeVar("_V")


@attrs.frozen
class ClientEnvironment:
    """Clock, sleep and random numbers, which tests replace. ``notify``: called with a message for
    people when the client begins to look for another node."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    random: Random = attrs.field(factory=Random)
    notify: Callable[[str], object] | None = None


class BlockingSession:
    """Connections to the nodes of one cluster. May be used by several threads, and after a fork.

    ``patience_s``: how long a request looks for a node that answers, from its first failure on.
    """

    def __init__(
        self,
        seeds: Seeds,
        options: ConnectionOptions,
        discover: bool = True,
        patience_s: float = 20.0,
        environment: ClientEnvironment | None = None,
    ) -> None:
        environment = environment or ClientEnvironment()
        tracing.activate()
        self.now_s, self._sleep = environment.now_s, environment.sleep
        self._notify = environment.notify
        self._nodes = Nodes(seeds.addresses, environment.random, discover)
        self._options = options
        self._patience_s = patience_s
        self._lock = threading.RLock()
        self._idle: dict[Address, list[NodeConnection]] = defaultdict(list)
        self._process = os.getpid()
        self._current: Address | None = None

    # -- requests ----------------------------------------------------------------------------

    def request(self, request: Request[_T]) -> _T:
        """Like :meth:`request_located`, but returns only the reply."""
        return self.request_located(request)[1]

    def request_located(self, request: Request[_T]) -> tuple[Address, _T]:
        """Execute a request at any node; see :meth:`NodeConnection.call`. Returns the address of
        the node that answered, and the reply.

        :raises CannotConnect: no node answered in time.
        :raises OutcomeUnknown: it may or may not have been executed.
        """
        active = tracing.ACTIVE
        span = None if active is None else active.begin(request.words)
        if span is None:
            return self._execute(request, lambda connection: connection.call(request))
        try:
            found = self._execute(request, lambda connection: connection.call(request))
        except BaseException as error:
            span.failed(error)
            raise
        span.answered(*found)
        return found

    def request_all_located(self, requests: Sequence[Request[_T]]) -> tuple[Address, list[_T]]:
        """Execute requests at one node, in one round trip. The requests must be of one command,
        repeatable, and must not wait. Returns the address of the node, and the replies."""
        return self._execute(requests[0], lambda connection: connection.call_all(requests))

    def _execute(
        self, request: Request[Any], call: Callable[[NodeConnection], _V]
    ) -> tuple[Address, _V]:
        """See :meth:`request_located`; ``call``: makes the request on a connection."""
        search = Search(self.now_s, self._patience_s, self._notify)
        while True:
            connection = self._connection_to_use(search, fresh=not request.repeatable)
            try:
                value = call(connection)
            except ConnectionLost as lost:
                self._mark_failed(connection.address)
                if not request.repeatable:
                    raise OutcomeUnknown(request.name, lost) from lost
                search.failed(lost.address, lost)
            except (Leaving, Loading) as refused:
                connection.close()
                self._mark_failed(connection.address)
                search.failed(refused.address, refused)
            except Refused:
                self._put_back(connection)
                raise
            else:
                self._put_back(connection)
                return connection.address, value

    def request_at(self, address: Address, request: Request[_T]) -> _T:
        """Execute a request at this node, now or not at all.

        :raises ConnectionLost: it cannot be reached, or the reply did not come.
        """
        try:
            connection = self._idle_connection(address, True) or self._open(address)
        except ConnectionLost:
            self._mark_failed(address)
            raise
        try:
            value = connection.call(request)
        except ConnectionLost:
            self._mark_failed(address)
            raise
        except Refused:
            self._put_back(connection)
            raise
        self._put_back(connection)
        return value

    def request_near(self, address: Address, request: Request[_T]) -> _T:
        """Execute a request at this node, or at another one if this cannot be reached."""
        try:
            return self.request_at(address, request)
        except ConnectionLost as lost:
            if lost.sent and not request.repeatable:
                raise OutcomeUnknown(request.name, lost) from lost
        return self.request(request)

    # -- nodes -------------------------------------------------------------------------------

    def address(self) -> Address:
        """The current node; connects to one if there is none."""
        if self._current is None:
            search = Search(self.now_s, self._patience_s, self._notify)
            connection = self._connection_to_use(search, fresh=True)
            self._put_back(connection)
            return connection.address
        return self._current

    def addresses(self) -> list[Address]:
        """All nodes of the cluster, as the current node lists them now."""
        address, hello = self.request_located(requests.hello())
        with self._lock:
            self._nodes.learn(address, hello)
            return self._nodes.addresses()

    def servers(self) -> Servers:
        """Pipelined connections to the nodes that are known now, none of them open yet."""
        self._look_up()
        with self._lock:
            return Servers(self._nodes.addresses(), self._options)

    def follow(self, id_prefix: str) -> None:
        """Prefer the node whose ID begins with this, if it is known and usable."""
        with self._lock:
            address = self._nodes.with_id_prefix(id_prefix, self.now_s())
            if address is not None:
                self._current = address

    def set_password(self, password: str) -> None:
        """Use this password for new connections, and close those that are not in use."""
        self.close()
        self._options = attrs.evolve(self._options, password=password)

    def close(self) -> None:
        """Close all connections that are not in use. New requests open new ones."""
        with self._lock:
            for connections in self._idle.values():
                while connections:
                    connections.pop().close()

    # -- connections -------------------------------------------------------------------------

    def _connection_to_use(self, search: Search, fresh: bool) -> NodeConnection:
        """A connection to the current node, or to the next best one that can be reached.

        ``fresh``: check that the node has not closed an idle connection meanwhile.
        """
        moved = False
        while True:
            try:
                address = self._current or self._pick()
            except NameNotFound as error:
                search.failed(error.name, error)
                self._sleep(LOOKUP_PAUSE_S)
                continue
            connection = self._idle_connection(address, fresh)
            if connection is not None:
                # :meth:`request_at` may have opened it to a node that is not the current one.
                self._current = address
                return connection
            try:
                connection = self._open(address)
            except AuthenticationRefused:
                raise
            except ClientError as error:
                self._mark_failed(address)
                search.failed(str(address), error)
                continue
            with self._lock:
                if not moved and self._nodes.has_better(address, self.now_s()):
                    moved, self._current = True, None
                    connection.close()
                    continue
                self._current = address
            return connection

    def _look_up(self) -> None:
        """Look up the names that stand for nodes, if it is time."""
        with self._lock:
            due = self._nodes.due(self.now_s())
        if due:
            found, why = resolve(due)
            with self._lock:
                self._nodes.resolved(found, why)

    def _pick(self) -> Address:
        self._look_up()
        with self._lock:
            address, wait_s = self._nodes.pick(self.now_s())
        if wait_s > 0:
            self._sleep(wait_s)
        return address

    def _open(self, address: Address) -> NodeConnection:
        """A new connection. The node's HELLO updates the list of nodes."""
        connection = NodeConnection(address, self._options)
        try:
            hello = connection.call(requests.hello())
        except ClientError:
            connection.close()
            raise
        with self._lock:
            self._nodes.learn(address, hello)
            self._nodes.recovered(address)
        return connection

    def _idle_connection(self, address: Address, fresh: bool) -> NodeConnection | None:
        """An idle connection, if there is one that can still be used."""
        if os.getpid() != self._process:
            self._after_fork()
        idle = self._idle[address]
        while idle:
            try:
                connection = idle.pop()
            except IndexError:
                return None
            if not fresh or connection.is_reusable():
                return connection
            connection.close()
        return None

    def _put_back(self, connection: NodeConnection) -> None:
        self._idle[connection.address].append(connection)

    def _mark_failed(self, address: Address) -> None:
        """The node does not answer, leaves or loads: close the idle connections to it as well."""
        with self._lock:
            self._nodes.failed(address, self.now_s())
            if self._current == address:
                self._current = None
            for connection in self._idle.pop(address, []):
                connection.close()

    def _after_fork(self) -> None:
        """Forget the open connections, which belong to the parent process."""
        self._lock = threading.RLock()
        self._idle = defaultdict(list)
        self._process = os.getpid()
