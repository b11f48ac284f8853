"""Whether the bus of nodes can be reached at all, by what they say of their configuration.

Without TLS, and without ``cluster-insecure yes``, a node opens its bus to its own host only.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final

import attrs

from disque_tx.cli.verbs.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import Refused

_DIRECTIVES: Final = ("cluster-bus-tls", "cluster-insecure", "bind")


@attrs.frozen
class BusConfig:
    """Of one node. ``open``: to the network; ``None`` if it does not say, as the original.
    ``bind``: the addresses it was told to listen on."""

    open: bool | None
    bind: tuple[str, ...]

    def listens_at(self, ip: str) -> bool:
        """Whether its bus may be reached at this address of its host."""
        if self.open is None or self.open:
            return True
        here = [host for host in self.bind if _is_loopback(host)] or ["127.0.0.1", "::1"]
        return ip in here


def bus_config(node: Disque) -> BusConfig:
    """Ask one node."""
    values = {name: _value(node, name) for name in _DIRECTIVES}
    switches = [values["cluster-bus-tls"], values["cluster-insecure"]]
    known = all(switch in ("yes", "no") for switch in switches)
    return BusConfig("yes" in switches if known else None, tuple((values["bind"] or "").split()))


def _value(node: Disque, name: str) -> str | None:
    try:
        _, value = node.execute("CONFIG", "GET", name)
    except (Refused, ValueError, TypeError):
        # The original does not know it; or CONFIG was renamed.
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def causes(members: Members, places: Mapping[str, str]) -> list[str]:
    """Why nodes cannot be met; ``places``: address for clients → IP address at which others are
    to meet the node."""
    answers = members.try_to_ask(places, bus_config).of
    return [
        f"The bus of {address} listens on loopback only, and others are to reach it at {ip}. Give"
        " it TLS (cluster-bus-tls yes), or say cluster-insecure yes where the network keeps"
        " strangers away; then start it again."
        for address, ip in places.items()
        if address in answers and not answers[address].listens_at(ip)
    ]
