"""Queues of which clients that wait by pattern may get nothing at present, by pause or limit: other
nodes are told not to send jobs of them (cluster protocol, section 21.8)."""

from __future__ import annotations

from disque_tx.core.queues.selector import Selector


class RefusedQueues:
    """Which selectors to look at again when a queue may deliver more. A queue that has no jobs here
    may be forgotten meanwhile, so this goes by names."""

    def __init__(self) -> None:
        self._by_name: dict[bytes, dict[Selector, None]] = {}

    def note(self, name: bytes, selector: Selector) -> None:
        """Other nodes are told that no jobs of this queue are welcome."""
        self._by_name.setdefault(name, {})[selector] = None

    def take(self, name: bytes) -> list[Selector]:
        """The queue may deliver more: the selectors that refused its jobs, which are forgotten."""
        if not self._by_name:
            return []
        return list(self._by_name.pop(name, ()))

    def take_all(self) -> list[Selector]:
        """The same of all queues."""
        return [selector for name in list(self._by_name) for selector in self.take(name)]

    def forget(self, selector: Selector) -> None:
        """Nothing is demanded of queues that match any more."""
        for name in selector.refused:
            selectors = self._by_name.get(name)
            if selectors is not None:
                selectors.pop(selector, None)
                if not selectors:
                    del self._by_name[name]
