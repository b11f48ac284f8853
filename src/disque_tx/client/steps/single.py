"""Steps: what clients of all kinds do with a session, written once.

An operation is a generator. It yields steps, is sent the answer to each, or has the exception
thrown in, and returns its result. The functions below are operations of one step, of which others
are made by ``yield from``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from disque_tx.client.addresses import Address
from disque_tx.client.requests.encoding import Request

_T = TypeVar("_T")
#: A step makes one request of a session. The sessions of all clients have the same methods, which
#: return the answer, a Deferred of it or a coroutine.
Step: TypeAlias = Callable[[Any], Any]
Steps: TypeAlias = Generator[Step, Any, _T]


def anywhere(request: Request[_T]) -> Steps[_T]:
    """Make a request of any node."""
    answer: _T = yield lambda session: session.request(request)
    return answer


def located(request: Request[_T]) -> Steps[tuple[Address, _T]]:
    """Make a request of any node. Returns the address of that node, too."""
    found: tuple[Address, _T] = yield lambda session: session.request_located(request)
    return found


def located_all(many: Sequence[Request[_T]]) -> Steps[tuple[Address, list[_T]]]:
    """Make several requests of one node, in one round trip; see :func:`located`."""
    found: tuple[Address, list[_T]] = yield lambda session: session.request_all_located(many)
    return found


def at(address: Address, request: Request[_T]) -> Steps[_T]:
    """Make a request of this node.

    :raises ConnectionLost: the node cannot be reached, or its answer did not come.
    """
    answer: _T = yield lambda session: session.request_at(address, request)
    return answer


def near(address: Address, request: Request[_T]) -> Steps[_T]:
    """Make a request of this node, or of another one if this cannot be reached."""
    answer: _T = yield lambda session: session.request_near(address, request)
    return answer
