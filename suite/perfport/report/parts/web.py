"""One self-contained HTML file from a page of markdown and its plots: nothing is fetched, and no text is markup.

Markdown is rendered without raw HTML, links lead to pages and web sites alone, and a content security policy holds
browsers to that: no script but the page's own, by its hash, nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markupsafe import Markup

from ...model.untrusted import printable
from .plots import Plot

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 0 1rem 4rem; color: #1a1a1a; background: #fff;
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1, h2, h3, h4, h5 { line-height: 1.25; margin: 2rem 0 .6rem; }
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
_POLICY = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def _value(value: Any) -> Any:
    """What a template puts in place of a value: markup as it is, of everything else what can be shown."""
    return value if isinstance(value, Markup) else printable(value)


#: Values are escaped unless they are markup already; a name that a template lacks is an error.
_TEMPLATES = Environment(
    autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_value
)


def template(source: str) -> Callable[..., Markup]:
    """Return a function that fills a template with values by name, escaped."""
    made = _TEMPLATES.from_string(source)
    return lambda **values: Markup(made.render(**values))


_FRAME = template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>{{ style }}</style>
</head>
<body>
{{ body }}
{% for script in scripts %}
<script>{{ script }}</script>
{% endfor %}
</body>
</html>
""")
#: What begins a block that belongs to none before it, as an item of a list might.
_BEGIN = re.compile(r"[#|A-Za-z]|\*\*")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)


def document(title: str, page: str, plots: Sequence[Plot]) -> str:
    """Return a page of markdown as an HTML document.

    Parameters
    ----------
    title : str
        Plain text.
    page : str
        Markdown.
    plots : sequence of Plot
        Images that the page refers to by file name.
    """
    images = {plot.name: plot.content for plot in plots}
    markdown = _Markdown("commonmark", {"html": False}).enable("table")
    markdown.block.ruler.before("html_block", "details", _details, {"alt": ["paragraph", "reference", "blockquote"]})
    parts = []
    for part in _parts(page):
        tokens = markdown.parse(part)
        for token in tokens:
            for inner in token.children or ():
                if inner.type == "image":
                    _embed(inner, images)
        parts.append(markdown.renderer.render(tokens, markdown.options, {}))
    content = "".join(parts)
    content = content.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return frame(title, Markup(content.replace("<p><img", '<p class="wide"><img')))


def _parts(page: str) -> Iterator[str]:
    """Yield a page in parts that mean the same when parsed alone: tokens take fifty times the memory of their text."""
    part: list[str] = []
    fence = ""
    for block in page.split("\n\n"):
        if part and not fence and _BEGIN.match(block):
            yield "\n\n".join(part)
            part = []
        part.append(block)
        for marks, behind in _FENCE.findall(block):
            if not fence:
                fence = marks
            elif marks.startswith(fence) and not behind.strip():
                fence = ""
    yield "\n\n".join(part)


def frame(title: str, body: Markup, style: str = "", scripts: Sequence[str] = ()) -> str:
    """Return a document around the content of its body, without a line's end at its own.

    Parameters
    ----------
    title : str
        Plain text.
    body : Markup
    style : str
        Added to what all documents share.
    scripts : sequence of str
        The only scripts that the page may run.
    """
    policy = _POLICY
    if scripts:
        policy += f"; script-src {' '.join(map(_hashed, scripts))}"
    place = Markup("<!-- body -->")  # what is escaped holds no such thing; a body of many megabytes is copied once
    around = _FRAME(
        title=title, style=Markup(_STYLE + style), body=place, policy=policy, scripts=list(map(Markup, scripts))
    )
    before, _, after = str(around).partition(place)
    return f"{before}{body}{after}"


def _hashed(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


class _Markdown(MarkdownIt):
    """CommonMark whose links lead to pages beside it and to web sites, nowhere else."""

    def validateLink(self, url: str) -> bool:
        try:
            return urlsplit(url).scheme in ("", "http", "https")
        except ValueError:
            return False


def _details(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Block rule: the lines that `markdown.details` writes around a body, the one HTML that there is in pages."""
    first, *rest = (
        state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]
        for number in range(start, min(start + 2, end))
    )
    summary = re.fullmatch("<summary>(.*)</summary>", rest[0]) if rest and first == "<details>" else None
    if state.is_code_block(start) or not (summary or first == "</details>"):
        return False
    if not silent:
        said = f"\n<summary>{html.escape(html.unescape(summary[1]))}</summary>" if summary else ""
        state.push("html_block", "", 0).content = f"{first}{said}\n"
        state.line = start + (2 if summary else 1)
    return True


def _embed(token: Any, images: Mapping[str, bytes]) -> None:
    """Put an image's content in place of its address."""
    name = posixpath.basename(unquote(str(token.attrs["src"])))
    if name in images:
        kind = "jpeg" if name.endswith(".jpg") else "svg+xml"
        token.attrs["src"] = f"data:image/{kind};base64," + base64.b64encode(images[name]).decode()
