"""Notebooks run as by Jupyter, with a kernel of this interpreter, and what their readers see."""

from __future__ import annotations

import os
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tests.acceptance.daemon import environment

#: A cell may wait for its turn on a busy machine.
_CELL_S: Final = 600
_ABSENT: Final = "raise ModuleNotFoundError('not here', name=__name__)\n"


def executed(notebook: NotebookNode, folder: Path, probe: str, **environ: str) -> NotebookNode:
    """Run a notebook in a folder, where neither pyspark nor a Java is found; returns it, with a
    cell ``probe`` with this source at its end.

    :raises nbclient.exceptions.CellExecutionError: when a cell fails.
    """
    notebook.cells.append(new_code_cell(probe, id="probe"))
    for package in ("pyspark", "py4j"):
        path = folder / "absent" / f"{package}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_ABSENT)
    given = environment(**environ, JAVA_HOME="/nowhere", PATH=os.path.dirname(sys.executable))
    given["PYTHONPATH"] = os.pathsep.join([str(folder / "absent"), given["PYTHONPATH"]])
    # Settings of the user play no part.
    given |= {name: str(folder / name) for name in ("IPYTHONDIR", "MPLCONFIGDIR")}
    # Names of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="kernel-") as sockets:
        manager = AsyncKernelManager(
            # Without other folders this is the kernel of ipykernel, in this interpreter.
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            connection_file=str(folder / "kernel.json"),
            transport="ipc",
            ip=f"{sockets}/kernel",
        )
        client = NotebookClient(
            notebook, km=manager, timeout=_CELL_S, resources={"metadata": {"path": str(folder)}}
        )
        client.execute(env=given, cleanup_kc=True)
    return notebook


def outputs(notebook: NotebookNode, cell: str, kind: str) -> list[str]:
    """What a cell displays of a MIME type; as ``text/plain`` also what it prints."""
    (found,) = [one for one in notebook.cells if one.id == cell]
    shown = []
    for output in found.outputs:
        if output.output_type == "stream":
            if kind == "text/plain":
                shown.append(output.text)
        elif kind in output.data:
            shown.append(output.data[kind])
    return shown


def table(notebook: NotebookNode, cell: str) -> list[list[str]]:
    """The rows of the table that a cell displays, as its readers see them, except quotation marks
    around texts."""
    (html,) = outputs(notebook, cell, "text/html")
    parser = _Table()
    parser.feed(html)
    return [[value.removeprefix('"').removesuffix('"') for value in row] for row in parser.rows]


class _Table(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self._is_inside = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "td"
        if tag == "thead":
            self.rows.clear()

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.rows[-1][-1] += data
