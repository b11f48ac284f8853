"""The two pages that Prometheus scrapes."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from disque_tx.plugins import IHost
from disque_tx.protocols.http.metrics.collector import NodeCollector
from disque_tx.protocols.http.metrics.perqueue import FAMILIES, NameFilter, queue_metrics
from disque_tx.protocols.http.metrics.sums import Figures, of_daemon, summed
from disque_tx.protocols.http.server.exchange import LIST_BYTES, Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import Route

_PROCESSES_MAX: Final = 128
_PLAIN: Final = "text/plain"
_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"


async def _figures(host: IHost, number: int) -> Figures:
    """The sums over the processes of the daemon, or the figures of the one with this number."""
    found = {1: host.view.figures()} if host.processes is None else await host.processes.gather()
    if not number:
        return of_daemon(found)
    if number not in found:
        raise Problem(404, "NOPROCESS", "There is no process with this number, or it is away.")
    return summed([found[number]])


class Pages:
    """The metrics of one daemon."""

    async def summary(self, exchange: Exchange) -> Reply:
        """The daemon as a whole: always a few hundred lines."""
        encode, content_type = choose_encoder(_accepted(exchange))
        figures = await _figures(exchange.host, exchange.number("process"))
        registry = CollectorRegistry(auto_describe=False)
        registry.register(NodeCollector(figures))
        return Reply(encode(registry), content_type=content_type)

    def detailed(self, exchange: Exchange) -> Reply:
        """Figures of every queue that is asked for."""
        names = [name for name in (exchange.word("family") or "").split(",") if name]
        unknown = sorted(set(names) - set(FAMILIES))
        if unknown:
            raise bad_request(f"There is no family {unknown[0][:50]!r}.")
        families = [FAMILIES[name] for name in names or FAMILIES]
        wanted = NameFilter(exchange.word("queue") or ".*")
        _encode, content_type = choose_encoder(_accepted(exchange))
        openmetrics = content_type.startswith("application/openmetrics-text")
        body = queue_metrics(exchange, families, wanted, openmetrics)
        return Reply(body, content_type=content_type)


def _accepted(exchange: Exchange) -> str:
    """The format that a client wants, in the words of the library, which fails at others."""
    return _OPENMETRICS if "application/openmetrics-text" in exchange.accept else ""


def metrics_routes() -> list[Route]:
    """The routes of both pages of metrics."""
    pages = Pages()
    return [
        Route(
            "GET", "/metrics", pages.summary,
            "Metrics of the daemon: the sums over its processes, or those of one",
            (Parameter("process", "Its number; 0 for all", "integer", 0, 0, _PROCESSES_MAX),),
            content_type=_PLAIN, errors=(404,),
        ),
        Route(
            "GET", "/metrics/detailed", pages.detailed, "Metrics of its queues",
            (
                Parameter(
                    "family", f"Some of {', '.join(FAMILIES)}, separated by commas",
                    longest=LIST_BYTES,
                ),
                Parameter("queue", "A pattern for names: text, . and .* and |", default=".*"),
            ),
            content_type=_PLAIN, costly=True,
        ),
    ]  # fmt: skip
