"""The clients of a simulated process: one connection, one parser, one writer each."""

from __future__ import annotations

from disque_tx.core.base.client import Client
from disque_tx.engine.turns import Clients
from disque_tx.errors import CommandError, PeerError
from disque_tx.sim.machines.interfaces import Running
from disque_tx.sim.world.connection import SimConnection
from disque_tx.wire.resp.replies import RespWriter
from disque_tx.wire.resp.requests import RequestParser


class SimSession:
    """``client``: the row that the node knows."""

    def __init__(self, client_id: int, connection: SimConnection, now_ms: int) -> None:
        self.connection = connection
        self.parser = RequestParser()
        self.writer = RespWriter()
        self.client = Client(client_id, self.writer, connection.peer_ip + b":1", now_ms)

    def speak(self, version: int) -> None:
        """Answer in RESP2 or RESP3 from now on."""
        self.writer = self.writer.speaking(version)
        self.client.replies = self.writer


class SimSessions(Clients):
    """All clients of one process. ``by_id``: by client ID, oldest first."""

    def __init__(self, process: Running) -> None:
        self.by_id: dict[int, SimSession] = {}
        self._process = process
        self._last_id = 0

    def accept(self, connection: SimConnection) -> None:
        """Somebody connected."""
        process = self._process
        self._last_id += 1
        session = SimSession(self._last_id, connection, int(process.node.now_ms))
        session.parser.restricted = process.server.password_required
        self.by_id[self._last_id] = session
        process.server.clients[self._last_id] = session.client
        process.server.stats.connections_received += 1
        connection.on_data = lambda data: process.feed(lambda: self._receive(session, data))
        connection.on_lost = lambda: process.feed(lambda: self._dismiss(session))

    def _receive(self, session: SimSession, data: bytes) -> None:
        if not session.connection.open:
            return
        process = self._process
        session.client.seen_ms = process.node.now_ms
        process.server.stats.net_input_bytes += len(data)
        session.parser.feed(data)
        self.drain(session)

    def drain(self, session: SimSession) -> None:
        """Execute what is complete and may be executed now."""
        process = self._process
        client = session.client
        try:
            if process.dispatcher.drain(client, session.parser):
                process.feed(lambda: self.drain(session))
        except PeerError as error:
            client.replies.error(CommandError("ERR", str(error)).reply())
            client.closing = True
        except Exception:
            client.abort_now = True
            process.node.outbox.touch(client)
            raise

    def resume(self, clients: list[Client]) -> None:
        """Look at what these clients sent while they waited."""
        for client in clients:
            session = self.by_id.get(int(client.id))
            if session is not None and session.connection.open:
                self.drain(session)

    def resume_all(self) -> None:
        """A pause of all clients is over."""
        self.resume([session.client for session in self.by_id.values()])

    def flush(self, clients: list[Client]) -> bool:
        """Let the replies of a turn leave. Input that waits for another turn was fed already."""
        for client in clients:
            client.touched = False
            session = self.by_id.get(int(client.id))
            if session is not None:
                self._flush(session)
        return False

    def output_bytes(self, client: Client) -> int:
        """Bytes of replies that the client has not read."""
        session = self.by_id.get(int(client.id))
        return 0 if session is None else int(session.writer.size) + session.connection.unread_bytes

    def _flush(self, session: SimSession) -> None:
        client, connection = session.client, session.connection
        if not client.abort_now:
            data = session.writer.take()
            self._process.leaves("a reply")
            self._process.server.stats.net_output_bytes += len(data)
            connection.write(data)
        if connection.open and (client.abort_now or client.closing):
            if client.abort_now:
                connection.abort()
            else:
                connection.close()
            self._process.feed(lambda: self._dismiss(session))

    def _dismiss(self, session: SimSession) -> None:
        """The connection is gone."""
        client = session.client
        if self.by_id.pop(int(client.id), None) is None:
            return
        server = self._process.server
        del server.clients[client.id]
        if client.monitor:
            server.monitors.remove(client)
        self._process.node.client_gone(client)

    def close(self) -> None:
        """Close all connections."""
        for session in self.by_id.values():
            session.connection.close()
