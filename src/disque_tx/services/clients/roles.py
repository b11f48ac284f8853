"""What clients of plugins may do: roles by password, commands by role."""

from __future__ import annotations

from hmac import compare_digest
from typing import TYPE_CHECKING

from disque_tx.commands.base.readonly import no_permission, reads
from disque_tx.commands.server.admin import too_many_guesses
from disque_tx.errors import CommandError
from disque_tx.plugins.values import Role
from disque_tx.services.machine.guesses import Guesses

if TYPE_CHECKING:
    from disque_tx.config.settings import Settings


def check_role(role: Role, words: tuple[bytes, ...]) -> None:
    """Raise ``CommandError`` when the role does not allow this command."""
    if role is Role.FULL:
        return
    if role is Role.NONE:
        raise CommandError("NOAUTH", "Authentication required.")
    if not reads(words[0].lower(), list(words)):
        raise no_permission()


class Passwords:
    """Roles by password. ``guesses``: what is known of wrong ones."""

    def __init__(self, settings: Settings, guesses: Guesses) -> None:
        self._settings = settings
        self._guesses = guesses

    def role(self, password: bytes | None, network: str) -> Role:
        """What a client of this network may do with this password.

        Without ``requirepass`` everybody may do everything. A wrong password costs the network one
        of its tries; without one left, ``CommandError`` says when there will be.
        """
        settings = self._settings
        if not settings.requirepass:
            return Role.FULL
        if password is None:
            return Role.NONE
        wait_s = self._guesses.wait_s(network)
        if wait_s:
            raise too_many_guesses(wait_s)
        if compare_digest(password, settings.requirepass):
            return Role.FULL
        reading = settings.readonly_password
        if reading and compare_digest(password, reading):
            return Role.READER
        self._guesses.wrong(network)
        return Role.NONE
