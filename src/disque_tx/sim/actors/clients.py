"""Clients of the simulated cluster: a connection, requests in RESP, and what to do when it breaks.

A client sends requests over the simulated network to a real node, one at a time or several at
once, and gives up on them after a while, as client libraries do; then nobody knows whether they
were executed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import hiredis

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage
    from disque_tx.sim.world.connection import SimConnection
    from disque_tx.sim.world.world import Timer

#: A reply, an error as ``hiredis.ReplyError``, or ``LOST``.
Then = Callable[[Any], None]
LOST: Final = object()
_PATIENCE_US: Final = 3_000_000
_RECONNECT_US: Final = 300_000


def request(*words: bytes) -> bytes:
    """The words as a RESP array of bulk strings."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


class SimClient:
    """A client of ``machine``, or of any one of the run's when it is ``None``.

    ``node``: the address it is connected to, or was last. ``sent_us``: when the last answer left.
    ``password``: sent first on a connection, together with the request; empty for none.
    """

    def __init__(
        self, run: Stage, name: str, machine: Machine | None = None, password: bytes = b""
    ) -> None:
        self.random = run.world.random(name)
        self.node: bytes = b""
        self.sent_us = -1
        self._run = run
        self._password = password
        self._greeted = True
        self._name = name
        self._machine = machine
        self._connection: SimConnection | None = None
        self._reader = hiredis.Reader()
        self._thens: deque[Then] = deque()
        self._requests = b""
        self._timer: Timer | None = None

    def ask(self, then: Then, *words: bytes, within_us: int = 0) -> None:
        """Send a request; ``then`` gets the reply, or ``LOST`` when there will be none.

        ``within_us``: how long the node itself may take.
        """
        self.ask_all([then], [words], within_us)

    def ask_all(
        self, thens: Iterable[Then], requests: list[tuple[bytes, ...]], within_us: int = 0
    ) -> None:
        """Send several requests in one piece; each of ``thens`` gets the reply to one of them."""
        self._run.requests += len(requests)
        self._thens.extend(thens)
        self._requests = b"".join(request(*words) for words in requests)
        self._timer = self._run.world.at(_PATIENCE_US + within_us, self._give_up)
        if self._connection is None:
            self._dial()
        else:
            self._connection.write(self._requests)

    def leave(self) -> None:
        """Go to another node for the next request."""
        self._drop()

    def _dial(self) -> None:
        machine = self._machine or self.random.choice(self._run.machines)
        self.node = machine.ip
        self._run.network.connect(
            self._name.encode(), machine.ip, machine.port, self._up, self._failed
        )

    def _up(self, connection: SimConnection) -> None:
        if not self._thens or self._connection is not None:
            connection.abort()
            return
        self._connection = connection
        self._reader = hiredis.Reader()
        connection.on_data = lambda data: self._received(connection, data)
        connection.on_lost = lambda: self._lost(connection)
        greeting = request(b"AUTH", self._password) if self._password else b""
        self._greeted = not greeting
        connection.write(greeting + self._requests)

    def _failed(self) -> None:
        if self._connection is None:
            self._answer(LOST)

    def _received(self, connection: SimConnection, data: bytes) -> None:
        if connection is not self._connection:
            return
        self.sent_us = connection.sent_us
        self._reader.feed(data)
        reply = self._reader.gets()
        if reply is not False and not self._greeted:
            self._greeted = True
            if isinstance(reply, hiredis.ReplyError):
                self._run.world.fail(f"{self._name}: the right password is refused: {reply}")
            reply = self._reader.gets()
        while reply is not False:
            self._answer(reply)
            reply = self._reader.gets() if self._thens else False

    def _lost(self, connection: SimConnection) -> None:
        if connection is self._connection:
            self._connection = None
            self._answer(LOST)

    def _give_up(self) -> None:
        self._drop()
        self._answer(LOST)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def _answer(self, reply: Any) -> None:
        if not self._thens:
            return
        if reply is not LOST:
            then = self._thens.popleft()
            if not self._thens:
                self._end_waiting()
            then(reply)
            return
        self._end_waiting()
        thens, self._thens = self._thens, deque()
        self._run.lost += len(thens)
        pause_us = int(_RECONNECT_US * (0.5 + self.random.random()))
        for then in thens:
            self._run.world.at(pause_us, partial(then, LOST))

    def _end_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
