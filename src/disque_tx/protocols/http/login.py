"""Logging in and out with a browser."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

from disque_tx.plugins import Role
from disque_tx.protocols.http.api.base.values import FLAG, ROOT, schema
from disque_tx.protocols.http.server.checks import PASSWORD_MAX
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.sessions import Sessions, cookie, token_of

_FORM: Final = "application/x-www-form-urlencoded"


class Login:
    """The operations on the sessions of a listener."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def log_in(self, exchange: Exchange) -> Reply:
        """Begin a session; one that the browser has ends, so that nobody can prepare it."""
        password, by_form = _password(exchange)
        role = exchange.connection.authenticate(password)
        if role is Role.NONE:
            raise Problem(401, "NOAUTH", "This is not the password.")
        self._end(exchange)
        headers = {"Location": "/"} if by_form else {}
        if self._sessions.needed():
            token = self._sessions.begin(role, exchange.connection.network)
            headers["Set-Cookie"] = cookie(exchange.request, token)
        status = 303 if by_form else 200
        return Reply(self._value(role), status, headers=headers)

    def log_out(self, exchange: Exchange) -> Reply:
        """End the session, if there is one."""
        self._end(exchange)
        headers = {"Set-Cookie": cookie(exchange.request, None)}
        return Reply(self._value(exchange.connection.authenticate(None)), headers=headers)

    def show(self, exchange: Exchange) -> dict[str, Any]:
        """What this client may do."""
        return self._value(exchange.role)

    def _end(self, exchange: Exchange) -> None:
        token = token_of(exchange.request)
        if token is not None:
            self._sessions.end(token)

    def _value(self, role: Role) -> dict[str, Any]:
        return {"role": role.name.lower(), "password_needed": self._sessions.needed()}


def _password(exchange: Exchange) -> tuple[bytes, bool]:
    """The password, and whether it comes from a form without a program."""
    by_form = exchange.content_type.partition(";")[0].strip().lower() == _FORM
    if by_form:
        try:
            fields = parse_qs(exchange.body.decode(), strict_parsing=True, max_num_fields=2)
        except ValueError as error:
            raise bad_request("The form is malformed.") from error
        value: Any = fields.get("password", [None])[0]
    else:
        value = exchange.json().get("password")
    if not isinstance(value, str) or not value:
        raise bad_request("password must be a string that is not empty.")
    password = value.encode("utf-8", "replace")
    if len(password) > PASSWORD_MAX:
        raise bad_request("The password is too long.")
    return password, by_form


def login_routes(sessions: Sessions) -> list[Route]:
    """Logging in and out, and who one is."""
    login = Login(sessions)
    roles = {"type": "string", "enum": [role.name.lower() for role in Role]}
    answer = schema(role=roles, password_needed=FLAG)
    return [
        Route(
            "POST", "/login", login.log_in, "Begin a session in a browser, as a cookie",
            body=schema(password={"type": "string"}), answer=answer, also=(303,),
            errors=(401, 403, 429), open=True,
        ),
        Route(
            "POST", "/logout", login.log_out, "End the session", answer=answer, errors=(403,),
            open=True,
        ),
        Route(
            "GET", f"{ROOT}/session", login.show, "What this client may do, and whether there is a"
            " password", answer=answer, errors=(401, 403, 429), open=True, identifies=True,
        ),
    ]  # fmt: skip
