"""Rows of the scoreboard: our experiments, imported ones and published rows, with results by split."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Order, Rest
from mlebench_console.console.nouns.costs import many
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.engine.scoreboard.model import COLUMNS, Costs, Measure, Row, Standing

_PADDED = "padded: incomplete seeds count as failing"


def is_ours(row: Row) -> bool:
    """Return whether a row's runs are known, unlike those of a published row."""
    return row.table in ("own", "imported")


def covers_all(row: Row) -> bool:
    """Return whether a row is over all of the benchmark's competitions."""
    return row.columns["all"].covered == row.columns["all"].of


def row_name(row: Row) -> str:
    """Return the name of a row, with whose it is unless it is published."""
    return {"own": f"ours: {row.name}", "imported": f"imported: {row.name}"}.get(row.table, row.name)


def limit_text(row: Row) -> str:
    """Write the time limit of a row's runs; empty if it is unknown."""
    return "" if row.hours is None else wording.duration(row.hours * 3600)


def seeds_text(row: Row) -> str:
    """Write the number of seeds of a row, or the table of a published one."""
    if not is_ours(row):
        return "published" if row.table == "main" else "additional"
    planned = f" of {row.seeds_planned}" if row.seeds_planned else ""
    return f"{row.seeds_done}{planned}{', running' if row.running else ''}"


def notes_of(row: Row) -> tuple[str, ...]:
    """Return the footnotes of a row."""
    return tuple(note for note in (_PADDED if row.padded else "", row.note, _cost_note(row)) if note)


def _cost_note(row: Row) -> str:
    """Return a note if a row's costs don't cover all runs; empty if they do, or none were measured."""
    costs = row.costs
    if costs is None or not costs.measured or costs.priced == costs.runs:
        return ""
    return f"costs of models: over {costs.priced} of {costs.runs} runs, of the others they are not known"


def are_measured(found: Iterable[Costs | None]) -> bool:
    """Return whether any model calls were measured."""
    return any(costs is not None and costs.measured for costs in found)


def tokens_a_run(costs: Costs | None) -> str:
    """Write the mean number of a run's tokens; empty if no model calls were measured."""
    return "" if costs is None or not costs.measured else many(costs.tokens_per_run)


def usd_a_run(costs: Costs | None) -> str:
    """Write the mean cost of a run; empty if no model calls were measured."""
    return _mean_cost(costs, lambda known: known.per_run)


def usd_a_medal(costs: Costs | None) -> str:
    """Write the cost of a medal; empty if no model calls were measured."""
    return _mean_cost(costs, lambda known: known.per_medal)


def _mean_cost(costs: Costs | None, mean: Callable[[Costs], float | None]) -> str:
    """Write a mean in US dollars; `unknown` if calls were measured but no run's cost is known."""
    if costs is None or not costs.measured:
        return ""
    found = mean(costs)
    return "unknown" if not costs.priced else wording.UNKNOWN if found is None else f"{found:,.2f}"


# What the costs of model calls are written as, by title.
COSTS = {"tokens a run": tokens_a_run, "USD a run": usd_a_run, "USD a medal": usd_a_medal}


def costs_text(costs: Costs | None) -> str:
    """Write the tokens and costs of model calls in short; empty if none were measured."""
    if costs is None or not costs.measured:
        return ""
    medal = "" if costs.per_medal is None else f", {usd_a_medal(costs)} USD a medal"
    return f"{tokens_a_run(costs)} tokens and {usd_a_run(costs)} USD a run{medal}"


def standing_cell(standing: Standing | None, drawing: Drawing) -> Cell:
    """Return a standing as mean and standard error, or as bounds while runs go on; a part of a split has none."""
    plus_minus = drawing.signs.plus_minus
    if standing is not None and standing.cell is not None:
        cell = standing.cell
        forms = (cell.figures(2, f"{plus_minus} "), cell.figures(1, plus_minus))
        # A mean without an error stands below the others' means.
        errors = (f" {plus_minus} 0.00", f" {plus_minus}0.0")
        alone = [f"{form}{' ' * len(error)}" for form, error in zip(forms, errors, strict=True)]
        return Forms((*(forms if cell.has_error else alone), f"{cell.mean:.1f}"))
    if standing is not None and standing.covered == standing.of and standing.interim is not None:
        low, high = standing.interim.low, standing.interim.high
        return Forms([((text, "dim"),) for text in (f"{low:.1f} to {high:.1f}", f"{low:.0f}-{high:.0f}")])
    return ((wording.UNKNOWN, "dim"),)


def split_field(name: str) -> NounField[Row]:
    """Return the field of a split, the benchmark's or one of the user's."""

    def mean(row: Row, _drawing: Drawing) -> float:
        cell = row.columns[name].cell
        return 0.0 if cell is None else -cell.mean

    return NounField(
        name,
        lambda row, drawing: standing_cell(row.columns[name], drawing),
        10,
        title=name.capitalize(),
        right=True,
        order=Order(f"by {name}", mean),
    )


def _covered(row: Row, _drawing: Drawing) -> Pieces:
    """Return how many of the benchmark's competitions a row is over; few of them make it stand out."""
    role: Role = "dim" if not is_ours(row) else "text" if covers_all(row) else "warn"
    return ((str(row.columns["all"].covered), role),)


def _seeds(row: Row, drawing: Drawing) -> Cell:
    """Return the number of seeds and their reliability; that of a published row is empty."""
    if not is_ours(row):
        return ""
    planned = row.seeds_planned
    done = f"{row.seeds_done} of {planned}" if planned else f"{row.seeds_done}"
    brief = f"{row.seeds_done}/{planned}" if planned else done
    if row.conflict:
        return Rest(
            ((done, "dim"),), (("  ", "text"), (row.conflict, "bad")), shorter=((row.conflict, "bad"),)
        )
    demo: Pieces = (("demo ", "warn"),) if row.demo else ()
    running: Pieces = ((", running", "running"),) if row.running else ()
    rerolled: Pieces = ((f", {row.rerolled} re-rolled", "warn"),) if row.rerolled else ()
    sign: Pieces = ((f" {drawing.signs.running}", "running"),) if row.running else ()
    short: Pieces = ((f" +{row.rerolled}", "warn"),) if row.rerolled else ()
    head: Pieces = (*demo, (done, "dim"))
    return Forms(((*head, *running, *rerolled), (*head, *sign, *short), (*demo, (brief, "dim"), *sign)))


def _notes(row: Row, _drawing: Drawing) -> str:
    notes = (
        "demo data, not a result" if row.demo else "",
        "imported" if row.table == "imported" else "",
        f"{row.rerolled} re-rolled" if row.rerolled else "",
        *notes_of(row),
        row.conflict,
    )
    return "; ".join(filter(None, notes))


def _document(row: Row, _now: float) -> dict[str, Any]:
    return asdict(row) | {"costs": None if row.costs is None else row.costs.document()}


def _cost(name: str, text: Callable[[Costs | None], str], title: str) -> NounField[Row]:
    return NounField(name, lambda row, _: text(row.costs), len(title), title=title, right=True, drop=4)


SCOREBOARD_ROW = Noun[Row](
    "row",
    key=lambda row: (row.table, row.name, row.llms, row.date),
    document=_document,
    fields=(
        NounField(
            "name",
            lambda row, _: ((row_name(row), "strong" if is_ours(row) else "text"),),
            20,
            grows=48,
            title="agent",
            order=Order("by name", lambda row, _: (row.name.lower(), row.llms.lower())),
            words=True,
        ),
        NounField("experiment", lambda row, _: row.name, 12, grows=40, words=True),
        NounField("agent", lambda row, _: row.agent, 16, grows=48, words=True),
        NounField(
            "models",
            lambda row, _: row.llms,
            12,
            grows=60,
            drop=1,
            role="dim",
            order=Order("by models", lambda row, _: (row.llms.lower(), row.name.lower())),
            words=True,
        ),
        *map(split_field, COLUMNS),
        NounField(
            "own", lambda row, drawing: standing_cell(row.own, drawing), 10, title="its own", right=True
        ),
        NounField("covered", _covered, 5, title="of 75", right=True),
        NounField(
            "hours",
            lambda row, _: limit_text(row),
            7,
            title="limit",
            right=True,
            role="dim",
            gap=1,
            order=Order("longest first", lambda row, _: -1.0 if row.hours is None else row.hours),
        ),
        NounField(
            "date",
            lambda row, _: row.date,
            10,
            right=True,
            drop=2,
            role="dim",
            order=Order("newest first", lambda row, _: row.date),
            words=True,
        ),
        NounField(
            "seeds",
            _seeds,
            10,
            grows=44,
            role="dim",
            order=Order(
                "most seeds first", lambda row, _: (is_ours(row), row.seeds_done or 0, row.table == "main")
            ),
        ),
        _cost("tokens", tokens_a_run, "tokens a run"),
        _cost("usd_run", usd_a_run, "USD a run"),
        _cost("usd_medal", usd_a_medal, "USD a medal"),
        NounField("edition", lambda row, _: row.edition, 7, drop=3, usual="v1", words=True),
        NounField("table", lambda row, _: row.table, 10, words=True),
        NounField("notes", _notes, 16, grows=REST, words=True),
    ),
)


@dataclass(frozen=True)
class SplitStanding:
    """How a row stands on a split, or on its own competitions."""

    split: str
    standing: Standing


def split_standings(row: Row) -> list[SplitStanding]:
    """Return how a row stands on its own competitions, where these are known, and on each split."""
    standings = {"its own": row.own, **row.columns}
    return [SplitStanding(name, one) for name, one in standings.items() if one is not None]


def _measure(measure: Measure, title: str, drop: int) -> NounField[SplitStanding]:
    """Return the field of a measure, whose error is left out where there is no room."""

    def cell(row: SplitStanding, drawing: Drawing) -> Cell:
        known = row.standing.measures.get(measure)
        if known is None:
            return wording.UNKNOWN
        return Forms((known.figures(1, drawing.signs.plus_minus), f"{known.mean:.1f}"))

    return NounField(measure.value, cell, 5, title=title, right=True, gap=1, drop=drop)


def _seeds_of_split(row: SplitStanding, _drawing: Drawing) -> str:
    cell = row.standing.cell
    return "" if cell is None else f"{cell.n or wording.UNKNOWN}"


SPLIT_STANDING = Noun[SplitStanding](
    "standing",
    key=lambda row: row.split,
    fields=(
        NounField("split", lambda row, _: row.split, 7),
        NounField(
            "covers", lambda row, _: f"{row.standing.covered} of {row.standing.of}", 8, right=True, gap=1
        ),
        NounField(
            "medals",
            lambda row, drawing: standing_cell(row.standing, drawing),
            11,
            title="any medal",
            right=True,
            gap=1,
        ),
        _measure(Measure.GOLD, "gold", 1),
        _measure(Measure.ABOVE_MEDIAN, ">med.", 2),
        _measure(Measure.VALID, "valid", 3),
        NounField("seeds", _seeds_of_split, 5, right=True),
    ),
)
