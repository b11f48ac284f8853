"""The ranges of ADDJOB's options, for protocols of listeners: least and greatest number of each."""

from __future__ import annotations

from disque_tx.messages.limits import (
    DELAY_RANGE,
    MAXLEN_RANGE,
    REPLICATE_RANGE,
    RETRY_RANGE,
    TTL_RANGE,
)

__all__ = ["DELAY_RANGE", "MAXLEN_RANGE", "REPLICATE_RANGE", "RETRY_RANGE", "TTL_RANGE"]
