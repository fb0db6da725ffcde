"""The page of a suite as one file: data, libraries and scripts in the text, nothing fetched.

The scripts of ``page/`` are plain JavaScript in the order of `SCRIPTS`, within one function; what they use of others
lies in ``vendor/`` with its licence.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from markupsafe import Markup

from ..parts import web

#: In the order in which they need each other.
SCRIPTS = (
    "dom.js", "words.js", "state.js", "matrix.js", "plots.js", "curves.js", "ladder.js", "source.js", "drawer.js",
    "tables.js", "claims.js", "portability.js", "modelled.js", "history.js", "main.js",
)  # fmt: skip
#: Libraries, each a script that makes a global of its own.
LIBRARIES = ("d3.min.js", "plot.umd.min.js", "diff.min.js")

_BODY = web.template("""<header id="top"></header>
<main id="main"><noscript><p>This page shows its data by a script of its own, which this browser does not run. The \
same is in the markdown files beside it.</p></noscript></main>
<script type="application/json" id="data">{{ data }}</script>""")
#: Stands for the data until the page is whole, so that they are copied once; what is escaped holds no such thing.
_DATA = Markup("<!-- data -->")


def document(title: str, data: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    title : str
        Plain text.
    data : str
        From `data.as_json`.
    """
    before, _, after = web.frame(title, _BODY(data=_DATA), _style(), (*_libraries(), _script())).partition(str(_DATA))
    return f"{before}{data}{after}"


def _read(folder: str, name: str) -> str:
    return files(__package__).joinpath(folder, name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return _read("page", "page.css")


@cache
def _libraries() -> tuple[str, ...]:
    return tuple(_read("vendor", name) for name in LIBRARIES)


@cache
def _script() -> str:
    parts = "\n".join(_read("page", name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'
