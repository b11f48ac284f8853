"""Counters since the start or the last CONFIG RESETSTAT (client protocol, section 10, Stats)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

SAMPLES_MAX: Final = 16
SAMPLE_MS: Final = 100


class Rate:
    """How fast a counter grows: the mean of its last 16 samples, per second."""

    __slots__ = ("_samples", "_next", "_last")

    def __init__(self) -> None:
        self._samples: list[float] = [0.0] * SAMPLES_MAX
        self._next: i64 = 0
        self._last: i64 = 0

    def sample(self, value: i64, elapsed_ms: i64) -> None:
        """The counter stands at ``value``, ``elapsed_ms`` after the last sample."""
        self._samples[self._next] = float(value - self._last) * 1000.0 / float(elapsed_ms)
        self._next = (self._next + 1) % SAMPLES_MAX
        self._last = value

    def per_second(self) -> float:
        """Growth per second."""
        return sum(self._samples) / SAMPLES_MAX


class ProtocolStats:
    """The counters of one protocol. ``connected``: connections that are open now; ``connections``:
    since the counters began. ``errors``: requests that were refused at once."""

    __slots__ = (
        "connected",
        "connections",
        "commands",
        "errors",
        "input_bytes",
        "output_bytes",
    )

    def __init__(self) -> None:
        self.connected: i64 = 0
        self.reset()

    def reset(self) -> None:
        """Start from zero; connections stay open."""
        self.connections: i64 = 0
        self.commands: i64 = 0
        self.errors: i64 = 0
        self.input_bytes: i64 = 0
        self.output_bytes: i64 = 0


class Stats:
    """Plain counters, incremented where the event happens. ``latest_fork_us``: how long the
    last rewrite of the log took to start. ``errors``: requests that were refused at once.
    ``protocols``: by name, what the clients of plugins' protocols did, which is part of the totals.
    The rates follow when :meth:`tick` is called often."""

    __slots__ = (
        "connections_received",
        "commands_processed",
        "rejected_connections",
        "net_input_bytes",
        "net_output_bytes",
        "latest_fork_us",
        "errors",
        "protocols",
        "ops",
        "net_input",
        "net_output",
        "_sampled_ms",
    )

    def __init__(self) -> None:
        self._sampled_ms: i64 = -1
        self.protocols: dict[str, ProtocolStats] = {}
        self.reset()

    def reset(self) -> None:
        """Start from zero."""
        self.connections_received: i64 = 0
        self.commands_processed: i64 = 0
        self.rejected_connections: i64 = 0
        self.net_input_bytes: i64 = 0
        self.net_output_bytes: i64 = 0
        self.latest_fork_us: i64 = 0
        self.errors: i64 = 0
        for protocol in self.protocols.values():
            protocol.reset()
        self.ops = Rate()
        self.net_input = Rate()
        self.net_output = Rate()

    def protocol(self, name: str) -> ProtocolStats:
        """The counters of a plugin's protocol."""
        found = self.protocols.get(name)
        if found is None:
            found = self.protocols[name] = ProtocolStats()
        return found

    def tick(self, now_ms: i64) -> None:
        """Take a sample of the rates every 100 ms; call it at least as often."""
        if self._sampled_ms < 0:
            self._sampled_ms = now_ms
        elapsed_ms = now_ms - self._sampled_ms
        if elapsed_ms < SAMPLE_MS:
            return
        self._sampled_ms = now_ms
        self.ops.sample(self.commands_processed, elapsed_ms)
        self.net_input.sample(self.net_input_bytes, elapsed_ms)
        self.net_output.sample(self.net_output_bytes, elapsed_ms)
