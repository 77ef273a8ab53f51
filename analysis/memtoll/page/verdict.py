# SPDX-License-Identifier: GPL-2.0
"""What the page says first: the verdict, its bar, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ..pictures.theme import toll_colour
from ..text import format_share
from .elements import section
from .words import shown

if TYPE_CHECKING:
    from ..recording import Recording

# Families are named from that part of the observed time on, as in the report in text.
LEAST = 0.005
LABELS = (("Evidence", "evidence"), ("Price", "cost"), ("Try", "try"))


def verdict(rec: Recording) -> str:
    """The verdict as the short report has it, with the first piece of advice in the same card."""
    said = rec.verdict
    rec.views.make("finding")
    ((short,),) = rec.views.rows("SELECT said FROM temp.verdict")
    whole = f"<details><summary>The verdict in full</summary><p><bdi>{shown(said.sentence)}</bdi></p></details>"
    return section(
        "verdict",
        "Verdict",
        _bar(rec),
        f'<p class="sentence"><bdi>{shown(short)}</bdi></p>',
        _first(said.advice),
        whole,
        _confidence(rec),
    )


def wrong_checks(rec: Recording) -> list[str]:
    """Checks that fail, by name. The machine's swap counts have what others do in them: where the target hardly swaps
    they are no matter of its verdict."""
    names = [str(name) for name in rec.checks.index[~rec.checks["ok"]]]
    of_others = float(rec.families["share"].get("swap", 0.0)) < 0.01
    return [name.replace("_", " ") for name in names if not (of_others and name.startswith("swapped"))]


def _confidence(rec: Recording) -> str:
    """One quiet line: what is wrong stands above all else (markup.warnings)."""
    lost = rec.losses[rec.losses["count"] > 0]
    attrs = rec.overhead.attrs
    limit = "no limit" if attrs["limit_pct"] is None else f"limit {attrs['limit_pct']:g} %"
    why = attrs.get("why")
    limit += f", {why}" if why else ""
    wrong = wrong_checks(rec)
    said = [
        "counts differ from the kernel's"
        if wrong
        else "checks ok"
        if rec.checks["ok"].all()
        else "checks ok but for the machine's swap",
        "nothing lost" if not len(lost) else "too much lost" if lost["exceeds"].any() else "little lost",
        f"overhead {attrs['estimated_pct']:.1f} % ({limit})",
    ]
    return f'<p class="confidence">{shown(", ".join(said))} <a href="#trust">Details</a></p>'


def _bar(rec: Recording) -> str:
    """Shares of the families in words, and as a bar: each toll in its own colour, as in every picture."""
    dominant = rec.verdict.dominant
    families = rec.families[rec.families["time_s"] > 0]
    if not len(families):
        return ""
    # The one that dominates first, as in the report in text.
    names = sorted((str(name) for name in families.index), key=lambda name: name != dominant)
    tolls = rec.toll[rec.toll["time_s"] > 0].sort_values("time_s", ascending=False, kind="stable")
    blocks = "".join(
        f'<i style="background:{toll_colour(str(toll))};width:{100 * row["share"]:.3f}%"></i>'
        for name in names
        for toll, row in tolls[tolls["family"] == name].iterrows()
    )
    words = "".join(
        f"<li{' class=dominant' if name == dominant else ''}>"
        f'<i style="background:{toll_colour(str(families.loc[name, "main_toll"]))}"></i>{shown(name)}'
        f" <strong>{format_share(families.loc[name, 'share'])}</strong>"
        f" <span>{shown(between(families.loc[name]))}</span></li>"
        for name in names
        if families.loc[name, "share"] >= LEAST or name == dominant
    )
    return f'<ul class="families-words">{words}</ul><div class="families" aria-hidden="true">{blocks}</div>'


def between(row: pd.Series) -> str:
    """The 95 % bounds of a share."""
    if pd.isna(row["share_low"]) or pd.isna(row["share_high"]):
        return ""
    return f"{100 * row['share_low']:.1f}-{100 * row['share_high']:.1f} %"


def saves(each: dict[str, Any]) -> str:
    """'at most 97 % of the observed time'; '' where it saves nothing."""
    gain = each.get("gain")
    return f"at most {100 * float(gain):.0f} % of the observed time" if gain else ""


def _facts(each: dict[str, Any], labels: tuple[tuple[str, str], ...]) -> str:
    return "".join(
        f'<p class="evidence"><b>{label}</b> <bdi>{shown(each[key])}</bdi></p>'
        for label, key in labels
        if each.get(key)
    )


def _saved(each: dict[str, Any]) -> str:
    return f'<p class="saves"><b>Saves</b> {shown(saves(each))}</p>' if saves(each) else ""


def _title(each: dict[str, Any]) -> str:
    return f"<code>{shown(each['code'])}</code> {shown(each.get('title', ''))}"


def _first(all_of_it: list[dict[str, Any]]) -> str:
    if not all_of_it:
        return ""
    each = all_of_it[0]
    return (
        f'<article id="do"><h3><b>Do</b> {_title(each)}</h3><p><bdi>{shown(each["text"])}</bdi></p>'
        f"{_saved(each)}{_facts(each, LABELS[1:])}{_facts(each, LABELS[:1])}</article>"
    )


def advice(rec: Recording) -> str:
    """What else could be done."""
    items = "".join(
        f"<article><h3>{_title(each)}</h3><p><bdi>{shown(each['text'])}</bdi></p>"
        f"{_saved(each)}{_facts(each, LABELS[1:])}{_facts(each, LABELS[:1])}</article>"
        for each in rec.verdict.advice[1:]
    )
    return section("advice", "What else could be done", items)
