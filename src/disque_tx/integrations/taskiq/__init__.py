"""taskiq on Disque: a broker, and a backend for results.

    from disque_tx.integrations.taskiq import DisqueBroker, DisqueResultBackend

    broker = DisqueBroker("disque://node1:7711,node2:7711").with_result_backend(
        DisqueResultBackend("disque://node1:7711,node2:7711")
    )

Labels of a task: ``delay``, in seconds, waits in the nodes; ``priority``, 0 to 9, the greatest
first; ``queue_name``; ``ttl``, in seconds. A message that a worker has is leased for as long as the
worker lives, and goes to another one after ``retry_s`` when it is killed. See
docs/how-to/use-dramatiq-taskiq-django-q2.md.

Recurring tasks: :class:`DisqueScheduleSource`.
"""

from __future__ import annotations

from disque_tx.integrations.taskiq.broker import DisqueBroker
from disque_tx.integrations.taskiq.results import DisqueResultBackend, ResultIsMissing
from disque_tx.integrations.taskiq.schedules import DisqueScheduleSource

__all__ = ["DisqueBroker", "DisqueResultBackend", "DisqueScheduleSource", "ResultIsMissing"]
