"""One self-contained HTML file from pages of markdown and their plots: nothing is fetched, nothing is scripted."""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from .plots import Plot

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 0 1rem 4rem; color: #1a1a1a; background: #fff;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1, h2, h3, h4, h5 { line-height: 1.25; margin: 2rem 0 .6rem; }
section { border-top: 3px solid #0072b2; margin-top: 3rem; }
section:first-of-type { border: 0; margin-top: 0; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #ccc; padding: .25rem .5rem; vertical-align: top; overflow-wrap: normal; }
th { background: #f0f3f6; text-align: left; }
tbody tr:nth-child(even) { background: #fafafa; }
td code, td[style*="right"] { white-space: nowrap; }
td { min-width: 4rem; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
pre { overflow-x: auto; background: #f6f6f6; padding: .6rem; }
img { min-width: 34rem; max-width: 100%; height: auto; display: block; }
blockquote { margin: 1rem 0; padding: .1rem 1rem; border-left: 4px solid #d55e00; background: #fff7f0; }
a { color: #00598c; }
@media (max-width: 40rem) { body { padding: 0 .6rem 3rem; } h1 { font-size: 1.5rem; }
  table { width: max-content; } td { max-width: 18rem; } }
"""
#: Values are escaped unless they are markup already; a name that a template lacks is an error.
_TEMPLATES = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template(source: str) -> Callable[..., Markup]:
    """Return a function that fills a template with values by name, escaped."""
    made = _TEMPLATES.from_string(source)
    return lambda **values: Markup(made.render(**values))


_FRAME = template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>{{ style }}</style>
</head>
<body>
{{ body }}
</body>
</html>
""")
_SECTION = template('<section id="{{ anchor }}">\n{{ content }}</section>')


def document(title: str, pages: Mapping[str, str], plots: Sequence[Plot]) -> str:
    """Return pages of markdown as one HTML document.

    Parameters
    ----------
    title : str
        Plain text.
    pages : mapping
        Markdown by anchor, in order. A link to ``ANCHOR.md``, in whatever folder, leads to that page of the document.
    plots : sequence of Plot
        Images that the pages refer to by file name.
    """
    images = {plot.name: plot.content for plot in plots}
    markdown = MarkdownIt("commonmark").enable("table")
    body = []
    for anchor, page in pages.items():
        tokens = markdown.parse(page)
        for token in tokens:
            for inner in token.children or ():
                _resolve(inner, images, pages)
        content = markdown.renderer.render(tokens, markdown.options, {})
        content = content.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
        content = content.replace("<p><img", '<p class="wide"><img')
        body.append(_SECTION(anchor=anchor, content=Markup(content)))
    return frame(title, Markup("\n").join(body))


def frame(title: str, body: Markup, style: str = "") -> str:
    """Return a document around the content of its body; ``style`` is added to what all documents share."""
    return _FRAME(title=title, style=Markup(_STYLE + style), body=body) + "\n"


def _resolve(token: Any, images: Mapping[str, bytes], pages: Mapping[str, str]) -> None:
    """Put an image's content in place of its address, and an anchor in place of a link to a page."""
    if token.type == "image":
        name = posixpath.basename(unquote(str(token.attrs["src"])))
        if name in images:
            kind = "jpeg" if name.endswith(".jpg") else "svg+xml"
            token.attrs["src"] = f"data:image/{kind};base64," + base64.b64encode(images[name]).decode()
    elif token.type == "link_open":
        name = posixpath.basename(str(token.attrs["href"])).removesuffix(".md")
        if name in pages:
            token.attrs["href"] = f"#{name}"
