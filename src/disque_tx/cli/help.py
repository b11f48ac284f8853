"""Help, hints and completion for commands."""

from __future__ import annotations

from typing import Final

from disque_tx.cli.syntax import ENTRIES, GROUPS, Topic, ways

LOCAL_WORDS: Final = ("HELP", "QUIT", "EXIT", "CLEAR", "CONNECT")
_INTRODUCTION: Final = """\
To get help:
  help <command>       about one command, such as "help ADDJOB" or "help cluster"
  help @<group>        about a group: connection, server, cluster, queues, jobs
Local words: help or ?, connect <host> <port>, clear, quit or exit
A number before a command repeats it: 5 PING
"""


def find(topic: str) -> list[Topic]:
    """The entries of ``@group``, of a command with all its subcommands, or of one subcommand."""
    topic = " ".join(topic.upper().split())
    if topic.startswith("@"):
        return [entry for entry in ENTRIES if entry.group == topic[1:].lower()]
    return [entry for entry in ENTRIES if (entry.name + " ").startswith(topic + " ")]


def render(topic: str, colour: bool = False) -> str:
    """The help text for the words after ``help``; the introduction if there are none."""
    if not topic.strip():
        return _INTRODUCTION
    entries = find(topic)
    if not entries:
        return 'No help for this. Try "help", or "help @<group>": ' + ", ".join(GROUPS) + "\n"
    return "\n".join([""] + [_describe(entry, colour) for entry in entries] + [""])


def _describe(entry: Topic, colour: bool) -> str:
    syntax = f"\x1b[1m{entry.name}\x1b[0m" if colour else entry.name
    syntax = " ".join((syntax, *entry.params))
    return f"  {syntax}\n  summary: {entry.summary}\n  group: {entry.group}\n"


def hint(line: str) -> str:
    """The arguments that may still follow the typed text; empty for an unknown command."""
    words = line.split()
    entry = _typed(words)
    if entry is None:
        return ""
    text = " ".join(_remaining(entry, words[len(entry.name.split()) :]))
    return text if line.endswith(" ") or not text else " " + text


def _remaining(entry: Topic, words: list[str]) -> list[str]:
    rest = list(entry.params)
    values = 0
    for word in words:
        if values > 0:
            values -= 1
        elif values == 0 or _begins_option(rest, word):
            values = _consume(rest, word.upper())
    return rest


def _begins_option(rest: list[str], word: str) -> bool:
    """Whether ``word`` ends a list of values, as MATCH does behind the queues of FROM."""
    return any(way[0] == word for param in rest for way in ways(param))


def _typed(words: list[str]) -> Topic | None:
    for size in (2, 1):
        name = " ".join(words[:size]).upper()
        for entry in ENTRIES:
            if entry.name == name:
                return entry
    return None


def _consume(rest: list[str], word: str) -> int:
    """Remove the parameter that ``word`` fills from ``rest``. Returns how many values follow it, -1
    for any number."""
    for index, param in enumerate(rest):
        for option, *values in ways(param):
            if param[0] in "[(" and word in option.upper().split("|"):
                del rest[index]
                return -1 if values[-1:] == ["..."] else len(values)
    for index, param in enumerate(rest):
        if not param.startswith("["):
            if not param.endswith("..."):
                del rest[index]
            break
    return 0


def completions(line: str) -> list[str]:
    """The completions of the last word of ``line``: commands, subcommands or options."""
    before, _, last = line.upper().rpartition(" ")
    words = before.split()
    if not words:
        candidates = [entry.name.split()[0] for entry in ENTRIES] + list(LOCAL_WORDS)
    elif words[0] in ("HELP", "?"):
        candidates = [entry.name for entry in ENTRIES] + ["@" + group.upper() for group in GROUPS]
    else:
        candidates = _followers(words)
    return sorted({word for word in candidates if word.startswith(last)})


def _followers(words: list[str]) -> list[str]:
    if len(words) == 1:
        subcommands = [e.name.split()[1] for e in ENTRIES if e.name.startswith(words[0] + " ")]
        if subcommands:
            return subcommands
    entry = _typed(words)
    if entry is None:
        return []
    firsts = [way[0] for param in entry.params for way in ways(param)]
    choices = [first.upper().split("|") for first in firsts if first.isupper() or "|" in first]
    if "setting" in firsts and len(words) > 2:
        choices.append(_settings())
    return [word for words in choices for word in words]


def _settings() -> list[str]:
    """The settings of policies; imported when they are needed, to start fast."""
    from disque_tx.core.policies.settings import SETTINGS

    return [name.decode().upper() for name in SETTINGS]
