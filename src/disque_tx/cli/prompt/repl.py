"""The prompt: history, completion and hints, on prompt_toolkit (client protocol, section 22.1)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from disque_tx.cli.help import completions, hint
from disque_tx.cli.prompt.shell import Quit, Shell
from disque_tx.text.quoting import split

HISTORY_LIMIT: Final = 1000
_STYLE: Final = Style.from_dict({"hint": "ansibrightblack"})


class CommandCompleter(Completer):
    """Completes commands, subcommands and options, in the case that is being typed."""

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """See ``Completer``."""
        line = document.text_before_cursor
        typed = line.rpartition(" ")[2]
        for word in completions(line):
            text = word.lower() if typed.islower() else word
            yield Completion(text, start_position=-len(typed))


class LineHistory(History):
    """A history in a file that only its owner may read, a line for each.

    Lines with a password are never written. If the file cannot be used, the history lasts as long
    as the program.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def load_history_strings(self) -> Iterable[str]:
        """The latest lines, newest first."""
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return []
        return lines[: -HISTORY_LIMIT - 1 : -1]

    def store_string(self, string: str) -> None:
        """Append a line."""
        if holds_password(string):
            return
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(fd, "a", encoding="utf-8", errors="replace") as file:
                file.write(string + "\n")
        except OSError:
            return


def holds_password(line: str) -> bool:
    """Whether a command line contains a password."""
    words = (
        split(line.encode("utf-8", "surrogateescape")) or line.encode("utf-8", "replace").split()
    )
    lowered = [word.lower() for word in words]
    return b"auth" in lowered[:2] or b"requirepass" in lowered


def history_path() -> str:
    """The file of the history in the user's home."""
    return os.path.expanduser("~/.disque_history")


def run(
    shell: Shell, history: History, device_in: Input | None = None, device_out: Output | None = None
) -> int:
    """Read lines until end of input or ``quit``; returns the exit status.

    ``device_in``, ``device_out``: the terminal, by default the one of the process.
    """
    session = _prompt_session(history, device_in, device_out)
    shell.greet()
    while True:
        try:
            line = session.prompt(shell.prompt())
            shell.execute(line.encode("utf-8", "surrogateescape"))
        except KeyboardInterrupt:
            continue
        except (EOFError, Quit):
            return 0


def _prompt_session(
    history: History, device_in: Input | None, device_out: Output | None
) -> PromptSession[str]:
    session: PromptSession[str] = PromptSession(
        history=history,
        completer=CommandCompleter(),
        complete_style=CompleteStyle.READLINE_LIKE,
        complete_while_typing=False,
        style=_STYLE,
        input=device_in,
        output=device_out,
    )

    def grey_hint() -> StyleAndTextTuples:
        return [("class:hint", hint(session.default_buffer.text))]

    session.input_processors = [ConditionalProcessor(AfterInput(grey_hint), ~is_done)]
    return session
