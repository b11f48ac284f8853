"""Handlers named on a command line."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import reduce
from typing import Any

from disque_tx.worker.errors import BadHandlers, ImportFailed
from disque_tx.worker.routes import routes_of


def loaded(target: str, queues: Sequence[str]) -> Any:
    """What ``package.module:name`` names, as handlers for a worker. A function does the jobs of
    the one queue that is given.

    :raises BadHandlers: there is no such thing, or it is no handlers.
    :raises ImportFailed: its module fails.
    """
    module_name, colon, name = target.partition(":")
    if not (colon and module_name and name):
        raise BadHandlers(f"{target!r} is not package.module:name.")
    handlers = _attribute(_module(module_name), name, target)
    if len(queues) == 1 and callable(handlers):
        handlers = {queues[0]: handlers}
    elif callable(handlers):
        raise BadHandlers(f"{target} is one function: say with --queue what it does, once.")
    routes_of(handlers)
    return handlers


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadHandlers(
                f"There is no module {error.name!r} here. Look at the spelling, start where it"
                " lies, or set PYTHONPATH."
            ) from error
        raise ImportFailed(f"Module {name!r} cannot be imported: {error}.") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ImportFailed(f"Module {name!r} cannot be imported: {what}.") from error


def _attribute(module: Any, name: str, target: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        raise BadHandlers(f"{target}: {error}.") from error
