"""Write an experiment as one HTML page: row, disclosure, tables, plots, every run. The page loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files

from mlebench_console.engine.model_costs import CURRENCY
from mlebench_console.engine.scoreboard.aggregation import by_category, by_complexity
from mlebench_console.engine.scoreboard.export import disclose, row_notes
from mlebench_console.engine.scoreboard.insight import Insight, ending_of, insight_of
from mlebench_console.engine.scoreboard.model import (
    COLUMNS,
    MEASURES_BY_INTEREST,
    Evidence,
    Measure,
    Row,
    Standing,
    Trial,
)
from mlebench_console.engine.scoreboard.plots import plots_of, svg, timeline_svg
from mlebench_console.engine.scoreboard.timeline import Timeline, counted_marks
from mlebench_console.engine.settings import Prices
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.text import limit_text, plural, visible
from mlebench_console.state.lifecycle import FailureClass

# The colour of an ending, as on the console's screens: a failure is red, a submission without a score is none.
_KINDS = {
    **{medal: medal for medal in ("gold", "silver", "bronze")},
    "above median": "above",
    "below median": "below",
    "invalid": "invalid",
    "no submission": "invalid",
    **{kind.value: "bad" for kind in FailureClass},
}
# Of a longer text only its beginning is seen until it is opened.
_LONGEST_SHOWN, _LONGEST_SUMMARY = 300, 60
_INTERVALS = (
    "The 95 % interval of any medal is Wilson's for the share of runs that earn one, each run taken as a trial of its"
    " own, so that it lies within 0 and 100 and says something of one seed too. The figures behind ± are MLE-bench's"
    " standard errors over seeds."
)
# How many published rows above and below are shown.
_NEIGHBOURS = 3
# The most characters shown of a text that an agent wrote.
_LONGEST = 200


def page_of(
    evidence: Evidence,
    row: Row,
    *,
    published: Sequence[Row] = (),
    prices: Prices | None = None,
    timeline: Timeline | None = None,
    needs: Sequence[str] = (),
) -> str:
    """Return the page; logs of own runs are linked, not copied. Timeline and needs cover own runs only."""
    disclosure = disclose(evidence, row)
    insight = insight_of(evidence, prices)
    title = escape(visible(row.name))
    style = files("mlebench_console.engine.scoreboard").joinpath("page.css").read_text(encoding="utf-8")
    is_part = row.own is not None and row.columns["all"].covered < row.columns["all"].of
    own = {"its own": row.own} if row.own is not None and is_part else {}
    sections = (
        _heading(row),
        _section("Needs a person", _table((), [(visible(text),) for text in needs])),
        _section("Row", _row_table(row, published)),
        _section("By split", _standings(own | dict(row.columns)), _INTERVALS),
        _plots(evidence, row),
        _section("By category", _standings(by_category(evidence, pad_missing=row.padded)), _INTERVALS),
        _section("How it was made", _table((), [(name, visible(text)) for name, text in disclosure.facts()])),
        _section("Attempts over time", "" if timeline is None else timeline_svg(timeline), _legend(timeline)),
        _section("Beyond the row", _table((), [(name, visible(text)) for name, text in insight.facts()])),
        _section("Models by competition", _model_costs(insight)),
        _section("Every run", _runs(evidence)),
        _section(
            "Notes",
            _table(
                ("competition", "seed", "tags", "note"),
                [
                    (one.competition_id, str(one.seed), " ".join(one.tags), visible(one.note))
                    for one in evidence.trials
                    if one.note or one.tags
                ],
            ),
        ),
        _section(
            "To be read with care",
            _table(
                ("competition", "", ""),
                [(flag.competition_id, flag.kind, flag.text) for flag in insight.flags],
            ),
        ),
    )
    # Nothing may be loaded or run, whatever an agent got into a text.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>\n<body>{''.join(sections)}</body></html>\n"
    )


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _heading(row: Row) -> str:
    about = [visible(row.agent), f"edition {row.edition}", row.date]
    if row.hours is not None:
        about.append(limit_text(row.hours))
    parts = [
        f"<h1>{escape(visible(row.name))}</h1><p class='about'>{escape(' · '.join(filter(None, about)))}</p>"
    ]
    if row.own is not None:
        parts.append(f"<p><strong>{escape(_so_far(row.own))}</strong></p>")
    parts += [f"<p class='warning'>{escape(visible(note))}</p>" for note in row_notes(row)]
    return "".join(parts)


def _so_far(standing: Standing) -> str:
    """Return what the runs earned on the competitions that they cover: the final figure, or its bounds so far."""
    whose = f"on its own {plural(standing.of, 'competition')}"
    if standing.cell is not None and (standing.interim is None or standing.interim.is_final):
        seed = "" if standing.cell.has_error else " (1 seed: no ±)"
        return f"any medal {standing.cell.figures()} %{seed} {whose}"
    if standing.interim is None:
        return f"no figure {whose}"
    return f"{standing.interim.so_far_in_words()}, {standing.interim.bounds_in_words()} {whose}"


def _legend(timeline: Timeline | None) -> str:
    """Explain the marks and bars of the timeline."""
    if timeline is None:
        return ""
    marks = ", ".join(f"{kind} ×{count}" for kind, count in counted_marks(timeline.marks).items())
    return (
        "One line for each slot; times are of the machine that wrote this. At the end of a bar: G, S, B a medal, ^ and"
        " v above and below the median, x invalid, ∅ no submission, ! a failure with the letter of its class;"
        f" a number at its begin counts attempts. {f'Marked: {marks}. ' if marks else ''}Below: medals over time."
    )


def _section(title: str, content: str, note: str = "") -> str:
    """Return a section of the page with content that scrolls by itself; empty without content."""
    about = f"<p class='about'>{escape(note)}</p>\n" if note else ""
    return f"<h2>{escape(title)}</h2>\n<div class='wide'>{content}</div>\n{about}" if content else ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """Return a table of plain text, empty without rows; its last `numbers` columns are right-aligned."""
    lines: list[str] = []
    if headings:
        cells = (_cell("th", text, place, len(headings), numbers) for place, text in enumerate(headings))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    for row in rows:
        cells = (_cell("td", text, place, len(row), numbers) for place, text in enumerate(row))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>" if len(lines) > bool(headings) else ""


def _cell(tag: str, text: str, place: int, width: int, numbers: int) -> str:
    number = " class='number'" if place >= width - numbers else ""
    if len(text) > _LONGEST_SHOWN:
        summary = f"{text[:_LONGEST_SUMMARY]}…"
        return f"<{tag}{number}><details><summary>{escape(summary)}</summary>{escape(text)}</details></{tag}>"
    return f"<{tag}{number}>{escape(text)}</{tag}>"


def _row_table(row: Row, published: Sequence[Row]) -> str:
    """Return the row among its neighbours in the published main table; a partial row also over its own competitions.

    Neighbours are those on all competitions, or else on the first split on which the row is complete.
    """
    partial = row.own is not None and row.own.cell is not None and row.columns["all"].cell is None
    own = (f"its own {row.own.of}",) if partial and row.own is not None else ()

    def line(one: Row) -> tuple[str, ...]:
        cells = [one.columns[column].cell for column in COLUMNS]
        if own:
            cells.append(one.own.cell if one.own is not None else None)
        name = f"▸ {visible(one.name)}" if one is row else visible(one.name)
        return (name, visible(one.llms), *("-" if cell is None else cell.figures() for cell in cells))

    shown = [row]
    column = next((name for name in ("all", *COLUMNS) if row.columns[name].cell is not None), None)
    if column is not None and not row.demo:
        main = (one for one in published if one.table == "main" and one.columns[column].cell is not None)
        ranked = sorted(main, key=lambda one: -_mean(one, column))
        better = [one for one in ranked if _mean(one, column) >= _mean(row, column)]
        worse = ranked[len(better) :]
        shown = [*better[-_NEIGHBOURS:], row, *worse[:_NEIGHBOURS]]
    return _table(("agent", "models", *COLUMNS, *own), map(line, shown), numbers=4 + len(own))


def _mean(row: Row, column: str) -> float:
    cell = row.columns[column].cell
    return 0.0 if cell is None else cell.mean


def _standings(standings: Mapping[str, Standing]) -> str:
    names = [measure.words for measure in MEASURES_BY_INTEREST]
    lines = [
        (
            name,
            f"{standing.covered} of {standing.of}",
            _interval(standing),
            *_figures(standing),
        )
        for name, standing in standings.items()
        if standing.covered
    ]
    headings = ("", "competitions", "95 % interval", *names)
    return _table(headings, lines, numbers=len(names) + 1)


def _figures(standing: Standing) -> Iterator[str]:
    """Yield every measure; for one that is not final its bounds, where they are known."""
    for measure in MEASURES_BY_INTEREST:
        cell, interim = standing.measures.get(measure), standing.interim
        if cell is not None:
            yield cell.figures()
        elif measure is Measure.ANY_MEDAL and interim is not None and standing.covered == standing.of:
            yield interim.bounds_in_words()
        else:
            yield "-"


def _interval(standing: Standing) -> str:
    cell = standing.measures.get(Measure.ANY_MEDAL)
    found = None if cell is None else cell.wilson()
    return "-" if found is None else f"{found[0]:.1f} to {found[1]:.1f}"


def _plots(evidence: Evidence, row: Row) -> str:
    if evidence.conflict:
        return ""
    drawn = [svg(plot) for plot in plots_of(evidence, row)]
    return f"<h2>Plots</h2><div class='plots'>{''.join(drawn)}</div>\n" if drawn else ""


def _model_costs(insight: Insight) -> str:
    """Return the table of model calls by competition; an unknown cost is written as such."""
    lines = []
    for name, costs in insight.model_costs_by_competition.items():
        per_run, per_medal = (
            "unknown" if costs.priced == 0 else "-" if value is None else f"{value:,.2f}"
            for value in (costs.per_run, costs.per_medal)
        )
        measured = f"{costs.measured} of {costs.runs}"
        tokens = f"{costs.tokens_per_run or 0:,.0f}"
        lines.append((name, measured, f"{costs.spending.calls:,}", tokens, per_run, per_medal))
    headings = (
        "competition",
        "runs counted",
        "calls",
        "tokens a run",
        f"{CURRENCY} a run",
        f"{CURRENCY} a medal",
    )
    return _table(headings, lines, numbers=5)


def _runs(evidence: Evidence) -> str:
    most = max(map(len, evidence.by_competition.values()), default=0)
    heads = "".join(f"<th>seed {seed}</th>" for seed in range(1, most + 1))
    rows = []
    for split, names in by_complexity(evidence.competitions).items():
        if names:
            rows.append(f"<tr class='head'><td colspan='{most + 1}'>{escape(split)}</td></tr>")
        for name in names:
            cells = "".join(f"<td>{_run(trial)}</td>" for trial in evidence.by_competition[name])
            rows.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    return f"<table><tr><th>competition</th>{heads}</tr>{''.join(rows)}</table>" if rows else ""


def _run(trial: Trial) -> str:
    ending = ending_of(trial)
    kind = _KINDS.get(ending, "plain")
    score = "" if trial.score is None else f" {trial.score:g}"
    log = None if trial.provenance is None else trial.provenance.folder / protocol.LOG
    link = f" <a href='{escape(log.absolute().as_uri())}'>log</a>" if log and log.is_file() else ""
    reroll = " <small>re-rolled</small>" if trial.rerolls else ""
    why = (
        f"<br><small>{escape(_short(trial.text))}</small>"
        if trial.text not in ("", ending, f"{ending} submission")
        else ""
    )
    return f"<b class='{kind}'>{escape(ending)}</b>{score}{reroll}{link}{why}"
