"""The factory of HTTP connections, and all routes."""

from __future__ import annotations

from typing import Any, Final, cast

from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory
from twisted.internet.protocol import Factory
from zope.interface import implementer

from disque_tx.plugins import IHost
from disque_tx.protocols.http.api.actions import action_routes
from disque_tx.protocols.http.api.base.nodeinfo import NodeInfos
from disque_tx.protocols.http.api.eventfiles import event_file_routes
from disque_tx.protocols.http.api.events import event_routes
from disque_tx.protocols.http.api.figures import figure_routes
from disque_tx.protocols.http.api.findings import finding_routes
from disque_tx.protocols.http.api.history import history_routes
from disque_tx.protocols.http.api.jobs.adding import adding_routes
from disque_tx.protocols.http.api.jobs.arguments import argument_routes
from disque_tx.protocols.http.api.jobs.deadletters import deadletter_routes
from disque_tx.protocols.http.api.jobs.jobs import job_routes
from disque_tx.protocols.http.api.jobs.life import life_routes
from disque_tx.protocols.http.api.jobs.scanning import scanning_routes
from disque_tx.protocols.http.api.jobs.searching import searching_routes
from disque_tx.protocols.http.api.jobs.waiting import wait_routes
from disque_tx.protocols.http.api.node import node_routes
from disque_tx.protocols.http.api.nodestream import node_stream_routes
from disque_tx.protocols.http.api.openapi import openapi_routes
from disque_tx.protocols.http.api.queues.counts import count_routes
from disque_tx.protocols.http.api.queues.emptying import emptying_routes
from disque_tx.protocols.http.api.queues.policies import policy_routes
from disque_tx.protocols.http.api.queues.queues import queue_routes
from disque_tx.protocols.http.api.queues.schedules import schedule_routes
from disque_tx.protocols.http.api.workers import worker_routes
from disque_tx.protocols.http.files import file_routes
from disque_tx.protocols.http.health import health_routes
from disque_tx.protocols.http.login import login_routes
from disque_tx.protocols.http.metrics.pages import metrics_routes
from disque_tx.protocols.http.server.channel import Channel
from disque_tx.protocols.http.server.routes import Routes
from disque_tx.protocols.http.server.sessions import Sessions
from disque_tx.protocols.http.server.slices import Slices

#: Seconds without a byte after which a connection is closed while no request is under way.
IDLE_S: Final = 60


@implementer(IProtocolNegotiationFactory)
class HttpFactory(Factory):
    """Connections of one listener."""

    noisy = False

    def __init__(self, host: IHost, routes: Routes, sessions: Sessions) -> None:
        self.host = host
        self.routes = routes
        self.sessions = sessions
        self.slices = Slices(host.reactor)

    def buildProtocol(self, addr: IAddress | None) -> Channel:
        """Make the protocol of a connection."""
        channel: Any = Channel(self.host, self.routes, self.sessions, self.slices)
        channel.factory = self
        channel.timeOut = IDLE_S
        channel.callLater = self.host.reactor.callLater
        return cast(Channel, channel)

    def acceptableProtocols(self) -> list[bytes]:
        """What clients may choose by ALPN."""
        return [b"http/1.1"]

    def log(self, request: Any) -> None:
        """No access log: paths contain the names of queues."""


def standard_routes(host: IHost, sessions: Sessions) -> Routes:
    """Everything that a listener serves."""
    routes = Routes()
    routes.add(*health_routes(), *login_routes(sessions), *file_routes())
    routes.add(*adding_routes(), *job_routes(), *scanning_routes(), *searching_routes())
    routes.add(*argument_routes())
    routes.add(*queue_routes(), *count_routes(), *emptying_routes(), *deadletter_routes())
    routes.add(*policy_routes(), *schedule_routes())
    routes.add(*metrics_routes())
    infos = NodeInfos()
    routes.add(*node_routes(), *node_stream_routes())
    routes.add(*figure_routes(infos), *finding_routes(infos))
    routes.add(*history_routes(), *action_routes(), *worker_routes())
    routes.add(*event_routes(host), *event_file_routes(), *life_routes(), *wait_routes())
    routes.add(*openapi_routes(routes))
    return routes


def standard_factory(host: IHost) -> HttpFactory:
    """The factory of a listener that serves everything."""
    sessions = Sessions(host)
    return HttpFactory(host, standard_routes(host, sessions), sessions)
