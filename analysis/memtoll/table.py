# SPDX-License-Identifier: GPL-2.0
"""A DataFrame that carries the recording's losses and shows them when it is printed."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from .visible import visible_lines


class Table(pd.DataFrame):
    """A DataFrame whose repr says what its recording lost, and whether it is incomplete.

    df.attrs["losses"]: {name: {"count": int, "share": 0..1 or None, "of": str or None}}, empty
    where nothing was lost; df.attrs["complete"]: bool; df.attrs["recording"]: the path; host, started
    (UTC), tool_version, exit_status (of a command): None where it is not known. Parts and
    reordered copies of a Table keep them.
    """

    @property
    def _constructor(self) -> Callable[..., Table]:
        return Table

    @property
    def note(self) -> str:
        """One line on losses and incompleteness; '' where there is nothing to say."""
        return note(self.attrs)

    def __repr__(self) -> str:
        text = visible_lines(str(super().__repr__()))
        return f"{text}\n{self.note}" if self.note else text

    def _repr_html_(self) -> str | None:
        text = super()._repr_html_()
        text = text if text is None else visible_lines(str(text))
        if text is None or not self.note:
            return text
        return f'{text}\n<p class="memtoll-note"><strong>{html.escape(self.note)}</strong></p>'


def note(attrs: Mapping[Any, Any]) -> str:
    """What a reader must know of the losses in a Table's attrs, in one line; '' where nothing."""
    parts = []
    if attrs.get("complete") is False:
        parts.append("incomplete: the recording was not finished")
    losses = attrs.get("losses") or {}
    if losses:
        parts.append("lost: " + ", ".join(_loss(name, loss) for name, loss in losses.items()))
    return "; ".join(parts)


def _loss(name: str, loss: Mapping[str, Any]) -> str:
    text = f"{loss['count']:,} {name}"
    if loss.get("of"):
        share = 100 * float(loss["share"] or 0)
        text += f" ({'<0.1' if 0 < share < 0.05 else f'{share:.1f}'} % of {loss['of']}s)"
    return text
