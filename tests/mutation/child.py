"""``python -m tests.mutation.child MODULE INDEX SECONDS TRIAL-ARGUMENT...``: one mutant.

The module is changed when it is imported, in this process only: no file is changed.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

from twisted.scripts.trial import run

from tests.mutation.operators import planted

#: The memory limit of a mutant.
_MEMORY_BYTES: Final = 2 << 30


class _Loader(SourceFileLoader):
    """Loads a module with one of its mutants planted."""

    def __init__(self, name: str, path: str, index: int) -> None:
        super().__init__(name, path)
        self._index = index

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path).decode()
        return compile(planted(source, self._index)[0], path, "exec")


class Planter(PathFinder):
    """Finds the one module, and plants a mutant in it."""

    def __init__(self, module: str, index: int) -> None:
        self._module = module
        self._index = index

    def find_spec(  # type: ignore[override]
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and isinstance(spec.loader, SourceFileLoader), fullname
        spec.loader = _Loader(fullname, spec.loader.path, self._index)
        return spec


def main(words: list[str]) -> None:
    """Run trial with a limit on its processor time (0: none); an empty ``MODULE`` means no
    defect."""
    module, index, seconds, *arguments = words
    if int(seconds):
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    if not any(word.startswith("tests.spark") for word in arguments):
        # A Java machine reserves far more addresses than it uses memory.
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    if module:
        sys.meta_path.insert(0, Planter(module, int(index)))
    sys.argv = ["trial", *arguments]
    run()


if __name__ == "__main__":
    main(sys.argv[1:])
