"""Which requests are served: the host they are meant for, the site they come from, the password.

Whoever opens a web page runs its author's programs next to a node that listens on loopback. They
can send requests, but they cannot choose these headers.
"""

from __future__ import annotations

from base64 import b64decode
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from twisted.web.http_headers import Headers

from disque_tx.protocols.http.server.problems import Problem, bad_request

#: Requests with these methods change nothing.
SAFE_METHODS: Final = frozenset(("GET", "HEAD"))
#: Where the health is; it is told whatever the request calls the host.
HEALTH_PATH: Final = b"/healthz/"
_TRUSTED_SITES: Final = (b"same-origin", b"none")
#: Bytes of a password.
PASSWORD_MAX: Final = 1024


def only(headers: Headers, name: str) -> bytes | None:
    """The value of a header that may occur once; refuses a request in which it occurs twice."""
    values = headers.getRawHeaders(name.encode())
    if not values:
        return None
    if len(values) > 1:
        raise bad_request(f"The header {name} occurs {len(values)} times.")
    return bytes(values[0])


def host_name(value: bytes) -> str:
    """The host in a ``Host`` header, without port and brackets, in lower case."""
    try:
        parts = urlsplit("//" + value.decode("ascii"))
        name, _port = parts.hostname, parts.port
    except ValueError:
        name = None
    if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
        raise bad_request("The header Host is malformed.")
    return name.rstrip(".")


def check_host(headers: Headers, allowed: list[str], any_name: bool = False) -> None:
    """Refuse a request for another host than this one. ``any_name``: only one that has no, or no
    valid, name of a host.

    A page of any site can let its name resolve to this address, and would then share its origin.
    An address cannot be redirected in that way.
    """
    value = only(headers, "Host")
    if value is None:
        raise bad_request("The header Host is missing.")
    name = host_name(value)
    if any_name or name == "localhost" or name.endswith(".localhost") or name in allowed:
        return
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        raise Problem(
            421,
            "HOST",
            "This node is not known by that name. Use its address, or add the name to the directive"
            " http-hosts.",
        ) from None


def check_origin(headers: Headers) -> None:
    """Refuse a request that a page of another site asks for: it may not change anything, and it
    may not keep the node busy either, though it could not read the answer."""
    site = only(headers, "Sec-Fetch-Site")
    if site is not None and site not in _TRUSTED_SITES:
        raise Problem(403, "ORIGIN", "Pages of other sites have no access here.")
    origin = only(headers, "Origin")
    if origin is None:
        return
    host = only(headers, "Host") or b""
    if origin not in (b"http://" + host, b"https://" + host):
        raise Problem(403, "ORIGIN", "Pages of other sites have no access here.")


def password_of(headers: Headers) -> bytes | None:
    """The password in ``Authorization``, as a bearer token or with any user name; ``None`` without
    the header."""
    value = only(headers, "Authorization")
    if value is None:
        return None
    scheme, _, rest = value.partition(b" ")
    rest = rest.strip(b" ")
    if len(rest) > PASSWORD_MAX:
        raise bad_request("The password is too long.")
    if scheme.lower() == b"bearer" and rest:
        return rest
    if scheme.lower() == b"basic":
        try:
            _user, colon, password = b64decode(rest, validate=True).partition(b":")
        except ValueError:
            colon, password = b"", b""
        if colon:
            return password
    raise bad_request("The header Authorization is malformed; use Bearer or Basic.")
