"""Requests to all nodes of a cluster, each of which knows only its own part."""

from __future__ import annotations

from typing import Any

from disque_tx.client import ClientError
from disque_tx.client.blocking import Disque
from disque_tx.client.requests.encoding import Request


def ask_all(client: Disque, request: Request[Any]) -> list[Any]:
    """The answers of all nodes that can be asked.

    :raises ClientError: none could.
    """
    answers = []
    client.address()  # so that the nodes are known
    servers = client.servers()
    try:
        for address in servers.addresses:
            (answer,) = servers.ask(address, [request])
            if not isinstance(answer, ClientError):
                answers.append(answer)
    finally:
        servers.close()
    if not answers:
        raise answer
    return answers
