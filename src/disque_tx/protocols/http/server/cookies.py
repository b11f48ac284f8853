"""The cookie of a session: which requests it counts for, and how it is set.

A browser sends a cookie along with requests that pages of other sites cause, so it proves who the
user is, and not that the user wants this.
"""

from __future__ import annotations

from typing import Any, Final

from disque_tx.protocols.http.server.checks import SAFE_METHODS, only
from disque_tx.protocols.http.server.problems import Problem
from disque_tx.protocols.http.server.sessions import LIFETIME_S

_TOKEN_MAX: Final = 100


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
