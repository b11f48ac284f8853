"""Services that a node has only if its configuration asks for them; the rest of the package is not
imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from twisted.application.service import MultiService

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings
    from disque_tx.services.machine.platform import Platform
    from disque_tx.services.turns.runtime import Runtime


def add_optional(
    node: MultiService,
    cluster: MultiService,
    runtime: Runtime,
    platform: Platform,
    settings: Settings,
    daemon: Callable[[], Settings],
) -> None:
    """Add those that ``settings`` ask for: to ``node`` what begins at the start, to ``cluster``
    what begins when the node serves. ``daemon``: gives the configuration of the whole daemon."""
    if settings.workqueue_redis and settings.workqueue_prefixes:
        from disque_tx.services.node.workqueue import WorkQueueCleaning

        WorkQueueCleaning(settings, platform.reactor).setServiceParent(node)
    if settings.cluster_discovery:
        from disque_tx.services.discovery.service import DiscoveryService

        random = runtime.node.random
        DiscoveryService(runtime, daemon, platform, random).setServiceParent(cluster)
    if settings.cluster_wait_for.nodes > 1:
        from disque_tx.services.discovery.waiting import WaitForNodes

        wanted = settings.cluster_wait_for
        waiting = WaitForNodes(runtime.server, wanted, platform.log, platform.reactor)
        waiting.setServiceParent(cluster)
