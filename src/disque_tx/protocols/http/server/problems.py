"""Problem documents (RFC 9457): every error is answered as one."""

from __future__ import annotations

import json
from typing import Any, Final

from twisted.web.http import RESPONSES

from disque_tx.errors import CommandError

CONTENT_TYPE: Final = "application/problem+json"
#: Error codes (client protocol, section 23) → status. ``ERR`` and unknown codes: 400.
STATUS_OF_CODE: Final = {
    "ACKED": 410,
    "BADID": 400,
    "DENIED": 403,
    "LEAVING": 503,
    "LOADING": 503,
    "MAXLEN": 409,
    "MISCONF": 503,
    "NOAUTH": 401,
    "NOJOB": 404,
    "NONODES": 503,
    "NOPERM": 403,
    "NOREPL": 503,
    "NOSCHEDULE": 404,
    "NOTREADY": 503,
    "OOM": 507,
    "PAUSED": 409,
    "TOOLATE": 410,
    "TRYLATER": 429,
    "UNKNOWNJOB": 404,
}
#: Seconds after which a client may try again, by status.
_RETRY_AFTER_S: Final = {429: 6, 503: 1}


class Problem(Exception):
    """A request is refused.

    ``status``: of the answer. ``code``: as in the client protocol, or a word of this API's own in
    capitals. ``detail``: what happened and what to do. ``headers``: further headers of the answer.
    """

    def __init__(
        self, status: int, code: str, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        if status in _RETRY_AFTER_S:
            self.headers.setdefault("Retry-After", str(_RETRY_AFTER_S[status]))
        if status == 401:
            self.headers.setdefault("WWW-Authenticate", 'Bearer realm="disque", charset="UTF-8"')

    def document(self) -> dict[str, Any]:
        """The members of the answer."""
        title = RESPONSES.get(self.status, b"Misdirected Request").decode()
        return {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }

    def encoded(self) -> bytes:
        """The body of the answer."""
        return json.dumps(self.document()).encode()


def problem_of(error: CommandError) -> Problem:
    """The problem for an error reply of the node."""
    status = STATUS_OF_CODE.get(error.code, 400)
    # Bytes of a request travel through the text as latin-1.
    return Problem(status, error.code, error.text.encode("latin-1").decode("utf-8", "replace"))


def bad_request(detail: str) -> Problem:
    """The request cannot be understood."""
    return Problem(400, "ERR", detail)
