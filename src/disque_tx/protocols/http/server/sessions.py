"""Sessions of people who have logged in with a browser: who has one, and for how long; and their
cookie: which requests it counts for, and how it is set.

A browser sends a cookie along with requests that pages of other sites cause, so it proves who the
user is, and not that the user wants this.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final

import attrs

from disque_tx.plugins import IHost, Role
from disque_tx.protocols.http.server.checks import SAFE_METHODS, only
from disque_tx.protocols.http.server.problems import Problem

#: Bytes of randomness in a token.
_TOKEN_BYTES: Final = 32
#: And characters of one that is looked at.
_TOKEN_MAX: Final = 100
#: A session ends when it was not used for so long, and so long after it began.
IDLE_S: Final = 30 * 60
LIFETIME_S: Final = 12 * 3600
#: Sessions that are kept of one role, and of those that come from one network. Beyond that, the one
#: ends that was not used for longest, of the same role and, if these are too many, network: nobody
#: can log out others by logging in.
SESSIONS_MAX: Final = 1_000
NETWORK_SESSIONS_MAX: Final = 100


@attrs.define
class _Session:
    """``network``: where the login came from. ``passwords``: of the node when the session began; it
    ends when one of them changes."""

    role: Role
    network: str
    passwords: tuple[bytes, bytes]
    began_s: float
    used_s: float


class Sessions:
    """The sessions of one listener. Sessions are in memory only, under the hash of their token."""

    def __init__(self, host: IHost) -> None:
        self._host = host
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def needed(self) -> bool:
        """Whether a password is set, without which nobody needs a session."""
        return bool(self._host.settings.requirepass)

    def begin(self, role: Role, network: str) -> str:
        """A new session; returns its token, which no client can choose."""
        now_s = self._host.reactor.seconds()
        token = token_urlsafe(_TOKEN_BYTES)
        self._sessions[_key(token)] = _Session(role, network, self._passwords(), now_s, now_s)
        alike = [key for key, kept in self._sessions.items() if kept.role is role]
        near = [key for key in alike if self._sessions[key].network == network]
        if len(near) > NETWORK_SESSIONS_MAX:
            del self._sessions[near[0]]
        elif len(alike) > SESSIONS_MAX:
            del self._sessions[alike[0]]
        return token

    def role(self, token: str) -> Role:
        """What the owner of this token may do; ``NONE`` if there is no such session any more."""
        key = _key(token)
        session = self._sessions.get(key)
        if session is None:
            return Role.NONE
        now_s = self._host.reactor.seconds()
        idle = now_s - session.used_s > IDLE_S or now_s - session.began_s > LIFETIME_S
        if idle or session.passwords != self._passwords():
            del self._sessions[key]
            return Role.NONE
        session.used_s = now_s
        self._sessions.move_to_end(key)
        return session.role

    def end(self, token: str) -> None:
        """The session is over, if there is one."""
        self._sessions.pop(_key(token), None)

    def _passwords(self) -> tuple[bytes, bytes]:
        settings = self._host.settings
        return settings.requirepass, settings.readonly_password


def _key(token: str) -> bytes:
    return sha256(token.encode()).digest()


def cookie_name(request: Any) -> str:
    """Cookies are shared by all ports of a host, so the port is a part of the name: people are
    logged in to several nodes of one host at once."""
    return f"disque-session-{getattr(request.getHost(), 'port', 'unix')}"


def token_of(request: Any) -> str | None:
    """The token that a request brings; ``None`` without one.

    Requests that pages of other sites caused are refused before. Raises ``Problem`` if a request
    changes something and does not say which page it comes from: browsers always do.
    """
    token: str | None = _value(request)
    if token is None:
        return None
    headers = request.requestHeaders
    named = only(headers, "Sec-Fetch-Site") or only(headers, "Origin")
    if named is None and request.method.decode("latin-1") not in SAFE_METHODS:
        raise Problem(
            403,
            "ORIGIN",
            "A session counts in browsers only; programs send the header Authorization.",
        )
    return token


def _value(request: Any) -> str | None:
    wanted = cookie_name(request).encode()
    for header in request.requestHeaders.getRawHeaders(b"Cookie", []):
        for pair in header.split(b";"):
            name, equals, value = pair.strip().partition(b"=")
            if equals and name == wanted and 0 < len(value) <= _TOKEN_MAX and value.isascii():
                return str(value.decode("ascii"))
    return None


def cookie(request: Any, token: str | None) -> str:
    """The header ``Set-Cookie`` for this token; ``None`` removes the cookie.

    Behind a proxy with TLS, the page's own address in ``Origin`` shows that it was used.
    """
    origin = only(request.requestHeaders, "Origin") or b""
    secure = request.isSecure() or origin.startswith(b"https://")
    age_s = LIFETIME_S if token else 0
    words = [f"{cookie_name(request)}={token or ''}", "Path=/", f"Max-Age={age_s}"]
    words += ["HttpOnly", "SameSite=Strict", *(("Secure",) if secure else ())]
    return "; ".join(words)
