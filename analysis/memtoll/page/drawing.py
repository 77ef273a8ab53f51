# SPDX-License-Identifier: GPL-2.0
"""Pictures as parts of a page: SVG whose colours are the page's variables, in two widths."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ..pictures.theme import THEMES, Picture
from ..visible import visible

SVG: Final = "http://www.w3.org/2000/svg"
XLINK: Final = "http://www.w3.org/1999/xlink"
# Inches: for desktops and for telephones. Their letters are as large as the page's.
WIDE: Final = (9.0, 4.2)
NARROW: Final = (3.4, 4.2)
# Dots per inch of what is drawn as an image inside.
IMAGE_DPI: Final = 180

VARIABLES: Final = {
    getattr(THEMES["page"], part): f"var(--{name})"
    for part, name in (("ground", "card"), ("ink", "ink"), ("faint", "faint"), ("line", "line"), ("band", "band"))
}
TOKEN: Final = re.compile("|".join(VARIABLES))
SANS: Final = re.compile(r"(?:'[^']*'|[\w-]+)(?:, ?(?:'[^']*'|[\w-]+))*, ?sans-serif")
MONO: Final = re.compile(r"(?:'[^']*'|[\w-]+)(?:, ?(?:'[^']*'|[\w-]+))*, ?monospace")
REFERENCE: Final = re.compile(r"url\(#")


@dataclass(frozen=True)
class Drawing:
    """A picture of a page: its words, and its SVG for wide and for narrow screens."""

    finding: str
    what: str
    wide: str
    narrow: str


def draw(name: str, make: Callable[[tuple[float, float]], Figure]) -> Drawing:
    """Both widths of a picture; name makes the ids in it unique. make: draws one of a size in inches."""
    figures = [make(size) for size in (WIDE, NARROW)]
    wide, narrow = (svg(figure, f"{name}-{width}") for figure, width in zip(figures, ("wide", "narrow"), strict=True))
    first = figures[0]
    said = (first.finding, first.what) if isinstance(first, Picture) else ("", "")
    return Drawing(*said, wide, narrow)


def svg(figure: Figure, prefix: str) -> str:
    """A figure in theme 'page' as an element of a page; the same figure gives the same text."""
    out = io.StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": prefix}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has other fonts
        # As savefig(transparent=True) does, which draws all of it twice.
        figure.set_dpi(IMAGE_DPI)
        for patch in (figure.patch, *(axes.patch for axes in figure.axes)):
            patch.set(facecolor="none", edgecolor="none")
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(out.getvalue())
    _clean(root, prefix)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(root: ElementTree.Element, prefix: str) -> None:
    """Own ids, the page's colours and fonts, no metadata; size is the page's matter."""
    for element in list(root):
        if element.tag == f"{{{SVG}}}metadata":
            root.remove(element)
    for element in root.iter():
        if element.text:
            element.text = visible(element.text)
        for key, value in list(element.attrib.items()):
            if key == "id":
                value = f"{prefix}-{value}"
            elif key == f"{{{XLINK}}}href" and value.startswith("#"):
                value = f"#{prefix}-{value[1:]}"
            else:
                value = REFERENCE.sub(f"url(#{prefix}-", value)
            if key == "style":
                value = MONO.sub(
                    "var(--mono)", SANS.sub("var(--sans)", TOKEN.sub(lambda match: VARIABLES[match[0]], value))
                )
            element.set(key, value)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")  # the caption says it
    root.set("focusable", "false")
