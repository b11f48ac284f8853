"""The transport: a connection of kombu to a cluster of Disque nodes.

Messages are fetched by threads, one per channel that consumes; they are delivered by whoever drains
events, with an event loop (Celery's worker) or without one.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from kombu.transport import virtual

from disque_tx import __version__
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    CannotConnect,
    ConnectionLost,
    Leaving,
    Loading,
    OutcomeUnknown,
    Refused,
)
from disque_tx.integrations.celery.broker import Broker
from disque_tx.integrations.celery.channel import DisqueChannel
from disque_tx.integrations.celery.options import (
    broker_options,
    connection_url,
    without_password,
)


class Transport(virtual.Transport):
    """See :mod:`kombu.transport.base`, whose names these are."""

    Channel = DisqueChannel
    can_parse_url = True
    default_port = 7711
    driver_type = "disque"
    driver_name = "disque-tx"
    polling_interval = None
    connection_errors = (
        *virtual.Transport.connection_errors,
        CannotConnect,
        ConnectionLost,
        OutcomeUnknown,
        Leaving,
        Loading,
        AuthenticationRefused,
    )
    channel_errors = (*virtual.Transport.channel_errors, Refused, BrokenReply)
    implements = virtual.Transport.implements.extend(
        asynchronous=True,
        exchange_type=frozenset(["direct", "topic", "fanout"]),
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        options = broker_options(
            connection_url(client),
            client.transport_options or {},
            client.ssl,
            client.connect_timeout,
        )
        self.broker = Broker(options)
        self._arrived = threading.Event()
        self._loop: Any = None
        self._waking = threading.Lock()
        self._wake_fd = -1

    def driver_version(self) -> str:
        return __version__

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """The URL in use, whatever kombu kept of it."""
        url = connection_url(self.client)
        return url if include_password else without_password(url, mask)

    # -- connections -------------------------------------------------------------------------

    def establish_connection(self) -> Any:
        self.broker.client.ping()
        return super().establish_connection()

    def verify_connection(self, connection: Any) -> bool:
        return self.broker.client.ping() == "PONG"

    def close_connection(self, connection: Any) -> None:
        self._leave_loop()
        super().close_connection(connection)
        self.broker.close()

    # -- without an event loop ---------------------------------------------------------------

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver messages, waiting for the first one.

        :raises socket.timeout: none came in time.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout
        while True:
            self._arrived.clear()
            if self._deliver_fetched():
                return
            self._fetch()
            wait_s = None if deadline_s is None else deadline_s - time.monotonic()
            if wait_s is not None and wait_s <= 0:
                raise TimeoutError
            self._arrived.wait(wait_s)

    def _fetch(self) -> None:
        for channel in list(self.channels):
            channel.fetch()

    def _deliver_fetched(self) -> int:
        return sum(channel.deliver() for channel in list(self.channels))

    def wake(self) -> None:
        """Something was fetched. Called by the threads that fetch."""
        self._arrived.set()
        with self._waking:
            if self._wake_fd >= 0:
                os.eventfd_write(self._wake_fd, 1)

    # -- with an event loop ------------------------------------------------------------------

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        self._leave_loop()
        self._loop = loop
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._wake_fd, self._on_fetched)
        loop.on_tick.add(self._fetch)

    def unregister_from_event_loop(self, connection: Any, loop: Any) -> None:
        self._leave_loop()

    def _on_fetched(self) -> None:
        try:
            os.eventfd_read(self._wake_fd)
        except BlockingIOError:
            return
        self._deliver_fetched()

    def _leave_loop(self) -> None:
        loop, self._loop = self._loop, None
        with self._waking:
            fd, self._wake_fd = self._wake_fd, -1
        if loop is not None:
            loop.on_tick.discard(self._fetch)
            loop.remove(fd)
            os.close(fd)
