"""Fields of lines of event logs: what makes a line an event, and which column each becomes."""

from __future__ import annotations

from typing import Final

#: What identifies an event: the node, the time of its start, and the number of the event.
KEY: Final = ("node", "boot", "seq")

NODE: Final = "^disque:[0-9a-f]{40}$"
NUMBER: Final = "^[0-9]{1,18}[.][0-9]{1,18}$"
#: Also of kinds that this version does not know: an audit after an upgrade may need them.
TYPE: Final = "^disque[.][a-z][a-z0-9-]*[.][a-z][a-z0-9-]*$"
#: Between two objects on a line. In a text the quotation mark would end it, and no colon follow.
JOINT: Final = r'(?<=\})[ \t\r]*(?=\{[ \t\r]*"[^"\\]*"[ \t\r]*:)'
#: Fields with numbers, and the greatest one that is taken. No node writes greater ones; their sums
#: would overflow, so that one such line would end every analysis of the table.
NUMBERS: Final = (
    *("messaging.message.body.size", "nacks", "additional_deliveries", "wait_ms", "run_ms"),
    *("retry_s", "ttl_s", "delay_s", "replicate", "copies", "backoff_ms", "occurrence_s", "jobs"),
)
NUMBER_MAX: Final = 1 << 40
RENAMED: Final = {
    "subject": "job_id",
    "messaging.destination.name": "queue",
    "messaging.message.body.size": "size",
    "messaging.client.id": "client_id",
}
SAME: Final = (
    *("nacks", "additional_deliveries", "wait_ms", "run_ms", "retry_s", "ttl_s", "delay_s"),
    *("replicate", "copies", "reason", "backoff_ms", "note", "successor", "schedule"),
    *("occurrence_s", "peer", "paused", "jobs", "body", "body_sha256"),
)
