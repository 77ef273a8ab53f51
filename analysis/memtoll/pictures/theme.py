# SPDX-License-Identifier: GPL-2.0
"""What all pictures share: colours, themes, a figure of a size, words made fit to be drawn.

A toll has the same colour everywhere, that of view toll_word, which the binary prints by, too.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from ..errors import Error
from ..schema import toll_words
from ..text import cut, format_bytes, format_time

TOLL_COLOURS: Final = {toll: word.colour for toll, word in toll_words().items()}
OTHER_COLOUR: Final = TOLL_COLOURS["compute"]

# Points of a letter's width by points of its size, on average, in DejaVu Sans.
LETTER: Final = 0.56
SIZE: Final = (9.0, 4.6)
DPI: Final = 110
POINTS: Final = 8.5
TITLE_POINTS: Final = 10.5
# Inches between the picture's edge and what is in it.
PAD: Final = 0.1


@dataclass(frozen=True)
class Theme:
    """Colours of a picture's ground, words and lines; CSS colours, or 'none' for no ground."""

    name: str
    ground: str
    ink: str
    faint: str
    line: str
    band: str


THEMES: Final = {
    theme.name: theme
    for theme in (
        Theme("light", "#ffffff", "#1b1f24", "#59636e", "#d1d7de", "#f3f5f7"),
        Theme("dark", "#11151a", "#e8edf2", "#9aa5b1", "#363e48", "#1a2027"),
        # Stand-ins that memtoll.page turns into CSS variables; titles are left to the page.
        Theme("page", "#010201", "#010202", "#010203", "#010204", "#010205"),
    )
}


def theme_of(name: str) -> Theme:
    """The theme of a name; Error where there is none."""
    if name not in THEMES:
        raise Error(f"no theme {name!r}: there are light and dark")
    return THEMES[name]


class Picture(Figure):
    """A Figure that a notebook shows by itself, whatever its matplotlib is set to.

    finding, what: its title and subtitle as plain text.
    """

    finding: str = ""
    what: str = ""

    def _repr_png_(self) -> bytes:
        import io

        out = io.BytesIO()
        self.savefig(out, format="png", dpi=DPI)
        return out.getvalue()


@dataclass
class Sheet:
    """Axes to draw on, and how: made by sheet(), ended by done()."""

    axes: Axes
    figure: Figure
    theme: Theme
    own: bool
    inches: float
    top: float = PAD
    bottom: float = PAD

    def columns(self, points: float, bold: bool = False) -> int:
        """Letters of a size that fit side by side."""
        return max(20, int((self.inches - 2 * PAD) * 72 / (points * LETTER * (1.13 if bold else 1))))

    def title(self, finding: str, what: str) -> None:
        """What the picture says, and in fainter words what it shows."""
        if isinstance(self.figure, Picture):
            self.figure.finding, self.figure.what = cut(finding, 240), cut(what, 320)
        if self.theme.name == "page":
            return
        said = textwrap.wrap(words(finding, 240), self.columns(TITLE_POINTS, bold=True))[:5]
        shown = textwrap.wrap(words(what, 320), self.columns(POINTS))[:5]
        ink = {"color": self.theme.ink, "fontsize": TITLE_POINTS, "fontweight": "bold"}
        faint = {"color": self.theme.faint, "fontsize": POINTS}
        if not self.own:
            self.axes.set_title("\n".join(said), loc="left", pad=8 + 11.5 * len(shown), **ink)
            self.axes.annotate(
                "\n".join(shown),
                (0, 1),
                (0, 5),
                xycoords="axes fraction",
                textcoords="offset points",
                va="bottom",
                **faint,
            )
            return
        height = self.figure.get_figheight()
        self.figure.text(PAD / self.inches, 1 - self.top / height, "\n".join(said), va="top", **ink)
        self.top += len(said) * TITLE_POINTS * 1.25 / 72 + 0.03
        self.figure.text(PAD / self.inches, 1 - self.top / height, "\n".join(shown), va="top", **faint)
        self.top += len(shown) * POINTS * 1.25 / 72 + 0.05

    def empty(self, reason: str) -> None:
        """Nothing to draw, and why."""
        self.axes.set_axis_off()
        text = textwrap.fill(words(reason, 400), self.columns(POINTS) * 2 // 3)
        where = {"ha": "center", "va": "center", "transform": self.axes.transAxes}
        self.axes.text(0.5, 0.5, text, color=self.theme.faint, fontsize=POINTS + 1, **where)

    def legend(self, handles: Iterable[Any] | None = None) -> None:
        """A legend below the axes, in as many columns as fit."""
        chosen = list(handles) if handles is not None else self.axes.get_legend_handles_labels()[0]
        if not chosen:
            return
        longest = max(len(str(handle.get_label())) for handle in chosen)
        columns = min(len(chosen), max(1, self.columns(POINTS) // (longest + 6)))
        style = {
            "handles": chosen,
            "ncol": columns,
            "frameon": False,
            "fontsize": POINTS,
            "labelcolor": self.theme.ink,
            "handlelength": 1.2,
            "columnspacing": 1.4,
            "borderaxespad": 0,
            "borderpad": 0,
        }
        if not self.own:
            below = self.axes.transAxes + ScaledTranslation(0, -0.55, self.figure.dpi_scale_trans)
            self.axes.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, **style)
            return
        where = (PAD / self.inches, self.bottom / self.figure.get_figheight())
        self.figure.legend(loc="lower left", bbox_to_anchor=where, **style)
        self.bottom += -(-len(chosen) // columns) * POINTS * 1.6 / 72 + 0.06

    def done(self) -> Figure:
        """The figure, its axes in the room that the words leave."""
        if self.own:
            height = self.figure.get_figheight()
            side = PAD / self.inches
            room = (side, self.bottom / height, 1 - 2 * side, 1 - (self.top + self.bottom) / height)
            self.figure.get_layout_engine().set(rect=room, w_pad=0, h_pad=0)
        return self.figure


def sheet(ax: Axes | None, theme: str, size: tuple[float, float] = SIZE) -> Sheet:
    """Axes of the caller, or of a new figure of so many inches, in a theme's colours."""
    colours = theme_of(theme)
    own = ax is None
    if ax is None:
        figure = Picture(figsize=size, dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.add_subplot()
    figure = ax.figure
    inches = figure.get_figwidth() * (1 if own else ax.get_position().width)
    figure.set_facecolor(colours.ground)
    ax.set_facecolor(colours.ground)
    ax.tick_params(colors=colours.line, labelcolor=colours.ink, labelsize=POINTS, which="both")
    for side, spine in ax.spines.items():
        spine.set_color(colours.line)
        spine.set_visible(side in ("left", "bottom"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(colours.ink)
        axis.label.set_fontsize(POINTS + 0.5)
    ax.set_axisbelow(True)
    return Sheet(ax, figure, colours, own, inches)


def words(text: str, columns: int = 60) -> str:
    """Text from a recording as one may draw it: printable, of a length, and no formula in it."""
    return cut("".join(c if c.isprintable() else "?" for c in text), columns).replace("$", r"\$")


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on a colour '#rrggbb'."""
    return "#000000" if luminance(colour) > 0.179 else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance, 0..1, of '#rrggbb' (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else math.pow((part + 0.055) / 1.055, 2.4) for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def toll_colour(toll: str) -> str:
    """The colour of a toll; grey for one that this version does not know."""
    return TOLL_COLOURS.get(toll, OTHER_COLOUR)


def time_ticks(axis: Any) -> None:
    """Ticks in seconds with the unit that fits: '1.00 us'."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _short(format_time(value))))


def bytes_ticks(axis: Any) -> None:
    """Ticks in bytes with the binary unit that fits."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _short(format_bytes(value))))


def log_ticks(axis: Any) -> None:
    """More than powers of ten where the logarithmic axis spans few of them."""
    low, high = sorted(axis.get_view_interval())
    if high < 300 * low:
        axis.set_major_locator(ticker.LogLocator(base=10, subs=(1, 2, 5)))


def _short(text: str) -> str:
    """'10.0 us' -> '10 us': ticks are round numbers."""
    number, _, unit = text.partition(" ")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {unit}"
