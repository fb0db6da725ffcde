"""Formats that libraries read for the suite: what these raise over damaged files, and XML that declares nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

from .errors import PerfportError, UsageError, cut

#: Elements inside each other; OpenCV's cascades have 6.
XML_DEPTH = 64


@contextmanager
def damaged(what: str) -> Iterator[None]:
    """Turn whatever a library raises over a damaged file into a `UsageError` that begins with ``what``.

    Around calls of libraries alone: zipfile, NumPy, Pillow and scikit-learn raise exceptions of a dozen classes over
    bytes that they did not expect, and document few of them.
    """
    try:
        yield
    except PerfportError:
        raise
    except Exception as error:
        raise UsageError(f"{what} ({cut(error) or type(error).__name__})") from None


def xml(text: bytes, where: str) -> ElementTree.Element:
    """Return the root of an XML text that has no document type: entities, which that declares, can grow without end.

    Parameters
    ----------
    text : bytes
    where : str
        How messages call it.

    Raises
    ------
    UsageError
        If it is not XML, has a document type, or more than `XML_DEPTH` elements inside each other.
    """
    parser = ElementTree.XMLParser(target=_Builder(where))
    with damaged(f"{where}: not an XML file"):  # bad syntax, bad bytes, unknown encoding
        parser.feed(text)
        root: ElementTree.Element = parser.close()
    return root


class _Builder(ElementTree.TreeBuilder):
    """Builds a tree of limited depth. Expat calls `doctype` before it reads what the document type declares."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where, self.depth = where, 0

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise UsageError(f"{self.where}: expected XML without a document type, got <!DOCTYPE {cut(name)}>")

    def start(self, tag: str, attributes: dict[str, str]) -> ElementTree.Element:
        self.depth += 1
        if self.depth > XML_DEPTH:
            raise UsageError(f"{self.where}: expected at most {XML_DEPTH} elements inside each other, got more")
        return super().start(tag, attributes)

    def end(self, tag: str) -> ElementTree.Element:
        self.depth -= 1
        return super().end(tag)
