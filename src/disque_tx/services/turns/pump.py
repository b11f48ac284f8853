"""The hot loop between sockets and commands: compiled, and free of Twisted.

For sockets that the fast acceptor serves, a request costs one receive, one send and what is in
this file and the compiled packages. Everything unusual (a connection that ends, a socket that is
full, a protocol error) is handed to the protocol object, which does it the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from mypy_extensions import i64

from disque_tx.commands.direct import DirectProtocol
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.core.base.client import Client
from disque_tx.engine.hotsocket import RECEIVE_BYTES, RECEIVE_SOME, receive, send_now
from disque_tx.engine.turns import Clients
from disque_tx.errors import CommandError, PeerError
from disque_tx.messages.replies import Output
from disque_tx.wire.resp.replies import RespWriter
from disque_tx.wire.resp.requests import RequestParser

if TYPE_CHECKING:
    from disque_tx.commands.base.context import Server

#: A client that sends little gets a small buffer.
_RECEIVE_LITTLE: Final = 448
#: Most requests fit in here, and then their bytes stay where they were received.
_RECEIVE_ONE: Final = 95
_LARGER: Final = {
    _RECEIVE_ONE: _RECEIVE_LITTLE,
    _RECEIVE_LITTLE: RECEIVE_SOME,
    RECEIVE_SOME: RECEIVE_BYTES,
    RECEIVE_BYTES: RECEIVE_BYTES,
}
#: More unprocessed input than this ends a connection (client protocol, section 2).
QUERY_BYTES_MAX: Final = 1024 * 1024 * 1024
_LARGE_READ: Final = 1024
_EPOLLIN: Final = 1


class Session(Client):
    """A client with its parser and its writer.

    ``connection``: the Twisted protocol it belongs to. ``recv`` and ``send``: receive and send at
    once what the socket has and takes; ``None`` when only the transport can. ``paused``: the
    socket is full, replies stay in ``writer`` until the protocol resumes. ``late``: it sent
    more requests than its share of a turn allows; until they are executed, nothing more is
    received, and a disconnect goes unnoticed. ``direct``: the protocol of a plugin that works
    within turns, ``None`` for RESP.
    """

    __slots__ = (
        "connection",
        "direct",
        "late",
        "parser",
        "paused",
        "recv",
        "room",
        "send",
        "writer",
    )

    def __init__(
        self,
        client_id: int,
        addr: bytes,
        now_ms: i64,
        connection: Any,
        direct: DirectProtocol | None = None,
    ) -> None:
        writer: Output = RespWriter()
        if direct is not None:
            writer = direct
            direct.client = self
        super().__init__(client_id, writer, addr, now_ms)
        self.direct: DirectProtocol | None = direct
        self.writer: Output = writer
        self.parser: RequestParser = RequestParser()
        self.connection: Any = connection
        self.recv: Callable[[int], bytes] | None = None
        self.send: Callable[[bytes], int] | None = None
        self.paused: bool = False
        self.late: bool = False
        self.room: i64 = _RECEIVE_ONE

    def adapt(self, size: i64) -> None:
        """Choose the buffer for the next read by the size of the last one."""
        if size == self.room:
            self.room = _LARGER[size]
        elif size < _RECEIVE_LITTLE < self.room:
            self.room = _RECEIVE_LITTLE

    def speak(self, version: int) -> None:
        """Answer in RESP2 or RESP3 from now on."""
        writer = self.writer
        if isinstance(writer, RespWriter):
            self.writer = self.replies = writer.speaking(version)

    def unread(self) -> int:
        """Bytes that were received and not executed."""
        direct = self.direct
        return self.parser.pending_bytes() if direct is None else direct.unread()


class Pump(Clients):
    """Moves requests in and replies out for all sessions of a node.

    ``late``: sessions that have more requests than one turn may take. ``again``: events of sockets
    that may hold more than was read, to be served in the next round. ``calls``: by client ID, the
    operations of programs that embed the node.
    """

    def __init__(self, server: Server, dispatcher: Dispatcher) -> None:
        self.late: list[Session] = []
        self.again: list[tuple[int, int]] = []
        self.calls: dict[int, Any] = {}
        self._server = server
        self._node = server.node
        self._stats = server.stats
        self._dispatcher = dispatcher

    def serve(
        self, events: list[tuple[int, int]], sessions: dict[int, Session]
    ) -> list[tuple[int, int]]:
        """Receive and execute for every session that is ready, as long as a turn may last; returns
        the events that need the ordinary way."""
        unusual: list[tuple[int, int]] = []
        for number, event in enumerate(events):
            if self._dispatcher.is_turn_over():
                self.again += events[number:]
                break
            session = sessions.get(event[0])
            if session is None:
                unusual.append(event)
                continue
            if session.late:
                self.again.append(event)
                continue
            if event[1] != _EPOLLIN:
                unusual.append(event)
                continue
            recv = session.recv
            if recv is None:
                unusual.append(event)
                continue
            data = receive(recv, session.room)
            if data is None:
                continue
            if not data:
                unusual.append(event)
                continue
            if len(data) == session.room:
                session.adapt(len(data))
                self.again.append(event)
            try:
                self.receive(session, data)
            except BaseException as fault:
                self._fail(session, fault)
        return unusual

    def receive(self, session: Session, data: bytes) -> None:
        """Parse what a client sent and execute what is complete."""
        size: i64 = len(data)
        session.seen_ms = self._node.now_ms
        self._stats.net_input_bytes += size
        if size * 16 < session.room:
            session.adapt(size)
        direct = session.direct
        if direct is None:
            session.parser.feed(data)
        else:
            direct.stats.input_bytes += size
            direct.feed(data)
        if not session.late:
            self.drain(session)
        if direct is not None:
            if direct.unread() > direct.unread_max:
                self._refuse(session, "sent too much while it waited")
        elif size >= _LARGE_READ and session.parser.pending_bytes() > QUERY_BYTES_MAX:
            self._refuse(session, "sent more than 1 GiB without a complete request")

    def drain(self, session: Session) -> None:
        """Execute what is complete and may be executed now."""
        was_late = session.late
        session.late = False
        try:
            direct = session.direct
            if direct is None:
                more = self._dispatcher.drain(session, session.parser)
            else:
                more = self._dispatcher.drain_direct(session, direct)
            if more:
                self.postpone(session)
        except PeerError as error:
            if error.silent:
                self._refuse(session, str(error))
            else:
                session.replies.error(CommandError("ERR", str(error)).reply())
                session.closing = True
        except BaseException as fault:
            self._fail(session, fault)
        if session.late != was_late and session.recv is None:
            session.connection.hold(session.late)

    def hung_up(self, session: Session) -> bool:
        """The client will send nothing more. ``True`` when answers of this turn are still to leave:
        they may hold jobs that the client wants to return to their queue, so the connection ends
        after them.
        """
        if session.paused or session.abort_now or session.writer.size == 0:
            return False
        self._node.client_gone(session)
        session.closing = True
        self._node.outbox.touch(session)
        return True

    def is_turn_over(self) -> bool:
        """The requests of this turn took as long as those of one turn may."""
        return self._dispatcher.is_turn_over()

    def drain_late(self) -> None:
        """Execute what had to wait for another turn, in order, as long as this one may last."""
        late, self.late = self.late, []
        for number, session in enumerate(late):
            if self._dispatcher.is_turn_over():
                self.late = late[number:] + self.late
                return
            if session.connection.session is session:
                self.drain(session)

    def resume(self, clients: list[Client]) -> None:
        """Execute what clients sent while they were blocked, in this turn or the next."""
        for client in clients:
            if isinstance(client, Session) and client.connection.session is client:
                if self._dispatcher.is_turn_over():
                    self.postpone(client)
                else:
                    self.drain(client)

    def postpone(self, session: Session) -> None:
        """Execute what this client sent in another turn."""
        session.late = True
        self.late.append(session)

    def _fail(self, session: Session, fault: BaseException) -> None:
        """A fault of this program: only the connection of this client ends."""
        session.connection.failed(fault)
        session.abort_now = True
        self._node.outbox.touch(session)

    def _refuse(self, session: Session, why: str) -> None:
        session.connection.refused(why)
        session.abort_now = True
        self._node.outbox.touch(session)

    def flush(self, clients: list[Client]) -> bool:
        """Send the replies of a turn; returns whether requests wait for another one."""
        for client in clients:
            client.touched = False
            if isinstance(client, Session):
                try:
                    self._send(client)
                except BaseException as fault:
                    self._fail(client, fault)
            else:
                call = self.calls.get(client.id)
                if call is not None:
                    call.flush()
        return bool(self.late)

    def _send(self, session: Session) -> None:
        """Send the replies, and end the connection if it is to be closed."""
        if session.abort_now:
            session.connection.abort()
            return
        if session.paused:
            return
        data = session.writer.take()
        if data:
            size: i64 = len(data)
            self._stats.net_output_bytes += size
            if session.direct is not None:
                session.direct.stats.output_bytes += size
            session.seen_ms = self._node.now_ms
            if not send_now(session.send, data, session.connection):
                return
        if session.closing and not session.paused:
            session.connection.finish()
