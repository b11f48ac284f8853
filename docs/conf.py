"""The documentation as a site: ``make site``.

Pages are those of this folder and some of the folder above, as they are. The lists and tables in
every ``index.md`` are the navigation of the site, so each page stands in one of them.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

from sphinx.application import Sphinx

import disque_tx

project = "disque-tx"
release = version = disque_tx.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinxcontrib.zopeext.autointerface",
]

root_doc = "docs/index"
include_patterns = ["docs/**.md", "docs/**.rst", "*.md"]
# README is for those who see the repository; the site begins with the index.
exclude_patterns = ["README.md", ".*", "build", "dist", "src", "tests"]
highlight_language = "none"

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"disque-tx {release}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
copybutton_prompt_text = "$ "

_SECTION = re.compile(r"^###? (.*)$", re.MULTILINE)
#: A list item that is a link, or a row of a table with a link in its first two columns.
_ITEM = re.compile(
    r"^(?:- |\|[^|]*\| ?)\[[^\]]*\]\(([^)#:\s]+\.(?:md|rst))(?:#[^)]*)?\)", re.MULTILINE
)


def navigate(_app: Sphinx, page: str, source: list[str]) -> None:
    """The lists and tables of an index are its part of the navigation, a group per heading that has
    one."""
    if not page.endswith("/index"):
        return
    _, *sections = _SECTION.split(source[0])
    for caption, text in zip(sections[::2], sections[1::2], strict=True):
        names = "\n".join(dict.fromkeys(_ITEM.findall(text)))
        if names:
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def drop_inline_scripts(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], *_: Any
) -> None:
    """The extension for interfaces brings one that needs jQuery, which is not there any more."""
    context["script_files"] = [each for each in context["script_files"] if each.filename]


def enter(app: Sphinx, fault: Exception | None) -> None:
    """Whoever opens the folder of the site is led to its first page."""
    if fault is None:
        (app.outdir / "index.html").write_text(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html">'
            f'<title>{project}</title><a href="{root_doc}.html">{project}</a>'
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", navigate)
    app.connect("html-page-context", drop_inline_scripts)
    app.connect("build-finished", enter)
