"""A name server as a process of its own: ``python -m tests.acceptance.cluster.nameserver``.

It writes its address as its first line. Each line that it reads is a list in JSON: a method or set
of :class:`NameServer` with its arguments. It confirms each with a line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.acceptance.daemon import environment


class Names:
    """The process, as tests control it. ``address``: for ``cluster-discovery-nameservers``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.address = self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def _order(self, *words: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()
        if self._read() != "done":
            raise AssertionError(f"the name server did not do {words[0]}")

    def hosts(self, name: str, addresses: Sequence[str]) -> None:
        """The name has these addresses; none: it does not exist."""
        self._order("hosts", name, list(addresses))

    def services(self, name: str, targets: Sequence[tuple[str, int]]) -> None:
        """The name has SRV records for these hosts and ports."""
        self._order("services", name, [list(target) for target in targets])

    def silence(self, name: str, silent: bool) -> None:
        """From now on, questions about the name are not answered, or are again."""
        self._order("silence", name, silent)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Serve until killed."""
    from twisted.internet import reactor
    from twisted.internet.stdio import StandardIO
    from twisted.protocols.basic import LineReceiver

    from tests.services.discovery.nameserver import NameServer

    server = NameServer(reactor)

    class Orders(LineReceiver):
        delimiter = b"\n"
        MAX_LENGTH = 1 << 20

        def connectionMade(self) -> None:
            self.sendLine(server.address.encode())

        def lineReceived(self, line: bytes) -> None:
            word, name, value = json.loads(line)
            if word == "silence":
                (server.silent.add if value else server.silent.discard)(name)
            else:
                getattr(server, word)(name, value)
            self.sendLine(b"done")

    StandardIO(Orders())
    reactor.run()


if __name__ == "__main__":
    main()
