"""Celery and kombu on Disque: importing this package makes ``disque://`` a URL of a broker, and
of results.

    import disque_tx.integrations.celery
    app = Celery(broker="disque://node1:7711,node2:7711", backend="disque://node1:7711")

``disques://`` is the same with TLS. See docs/how-to/use-celery.md.
"""

from __future__ import annotations

from typing import Final

from celery.app.backends import BACKEND_ALIASES
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT: Final = "disque_tx.integrations.celery.transport:Transport"
RESULTS: Final = "disque_tx.integrations.celery.results:DisqueBackend"

TRANSPORT_ALIASES["disque"] = TRANSPORT
TRANSPORT_ALIASES["disques"] = TRANSPORT
BACKEND_ALIASES["disque"] = RESULTS
BACKEND_ALIASES["disques"] = RESULTS
