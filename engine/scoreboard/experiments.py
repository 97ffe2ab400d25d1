"""Our own rows: the runs of each experiment, as the state holds them, turned into results and aggregated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from competitions import registry
from engine.scoreboard.aggregation import aggregate, complete_seeds
from engine.scoreboard.model import COLUMNS, Measure, Result, Row, Standing
from state import experiments, runs, sweeps
from state.database import Database
from state.lifecycle import MEDALS, Outcome, RunState
from state.records import Run, Sweep


@dataclass(frozen=True)
class _Entry:
    """A row in the making: its name, and its sweeps in the order in which their seeds count."""

    name: str
    note: str
    sweeps: tuple[Sweep, ...]


def own_rows(
    database: Database,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Row, ...]:
    """Make a row of every experiment, and of every sweep that belongs to none, newest first.

    Args:
        database: the state.
        pad_missing: count failed, stopped and missing runs as no medal instead of dropping their seeds.
        user_splits: further columns, by name.
    """
    columns = {column: registry.splits()[split] for column, split in COLUMNS.items()} | dict(
        user_splits or {}
    )
    runs_of = _runs_by_sweep(database)
    rows = [
        _row(entry, [runs_of[sweep.id] for sweep in entry.sweeps], columns, pad_missing=pad_missing)
        for entry in _entries(database)
    ]
    return tuple(reversed(rows))


def result_of(run: Run, *, pad_missing: bool) -> Result | None:
    """What a run counts for: a finished one its outcome, a lost one nothing or, with padding, no medal."""
    if run.state is RunState.FINISHED and run.outcome is not None:
        return Result(run.competition_id, _earned(run, run.outcome))
    return Result(run.competition_id) if pad_missing and run.has_ended else None


def _earned(run: Run, outcome: Outcome) -> frozenset[Measure]:
    if outcome is Outcome.NO_SUBMISSION:
        return frozenset()
    if outcome is Outcome.INVALID:
        return frozenset({Measure.SUBMISSION})
    earned = {Measure.SUBMISSION, Measure.VALID}
    if outcome in MEDALS:
        earned |= {Measure(outcome.value), Measure.ANY_MEDAL}
    if outcome is Outcome.ABOVE_MEDIAN or (outcome in MEDALS and _is_above_median(run)):
        earned.add(Measure.ABOVE_MEDIAN)
    return frozenset(earned)


def _is_above_median(run: Run) -> bool:
    """Of a medal: in herbarium-2020 the cut-off of bronze is the median, and a tie with it is not above."""
    return registry.get(run.competition_id).thresholds.above_median(run.score)


def _entries(database: Database) -> list[_Entry]:
    known = {sweep.id: sweep for sweep in sweeps.all_sweeps(database)}
    entries: list[_Entry] = []
    taken: set[str] = set()
    for experiment in experiments.all_experiments(database):
        members = tuple(known[sweep_id] for sweep_id in experiment.sweep_ids)
        taken.update(experiment.sweep_ids)
        if members:
            entries.append(_Entry(experiment.id, experiment.note, members))
    alone = [_Entry(sweep.id, sweep.note, (sweep,)) for sweep in known.values() if sweep.id not in taken]
    return sorted([*entries, *alone], key=lambda entry: entry.sweeps[-1].created_at)


def _runs_by_sweep(database: Database) -> dict[str, list[Run]]:
    found: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        found[run.sweep_id].append(run)
    return found


def _row(
    entry: _Entry, runs_of: Sequence[list[Run]], columns: Mapping[str, Sequence[str]], *, pad_missing: bool
) -> Row:
    everything = [run for part in runs_of for run in sorted(part, key=lambda run: run.seed)]
    found = [result_of(run, pad_missing=pad_missing) for run in everything]
    results = [result for result in found if result is not None]
    covered = sorted({run.competition_id for run in everything})
    conflict = _conflict(entry.sweeps)
    newest = entry.sweeps[-1]

    def standing(members: Sequence[str]) -> Standing:
        return _standing(() if conflict else results, members, covered, pad_missing=pad_missing)

    return Row(
        table="own",
        name=entry.name,
        agent=newest.spec.agent_id,
        llms="",
        columns={column: standing(members) for column, members in columns.items()},
        own=standing(covered),
        hours=newest.spec.time_limit_seconds / 3600,
        date=datetime.fromtimestamp(newest.created_at, UTC).date().isoformat(),
        edition=newest.spec.edition,
        seeds_done=complete_seeds(results, covered),
        seeds_planned=sum(sweep.spec.seeds for sweep in entry.sweeps),
        running=any(not run.has_ended for run in everything),
        demo=any(sweep.spec.demo for sweep in entry.sweeps),
        padded=pad_missing,
        rerolled=sum(run.rerolls > 0 for run in everything),
        note=entry.note,
        conflict=conflict,
    )


def _standing(
    results: Iterable[Result], members: Sequence[str], covered: Sequence[str], *, pad_missing: bool
) -> Standing:
    have = set(covered)
    count = sum(member in have for member in members)
    wanted = set(members)
    relevant = [result for result in results if result.competition_id in wanted]
    # A part of a split is never shown as if it were the whole: such a column says only how much there is.
    if count < len(members) or not relevant:
        return Standing(None, count, len(members))
    if not pad_missing and complete_seeds(relevant, members) == 0:
        return Standing(None, count, len(members))
    measures = aggregate(relevant, members, pad_missing=pad_missing)
    return Standing(measures[Measure.ANY_MEDAL], count, len(members), measures)


def _conflict(members: Sequence[Sweep]) -> str:
    """Say in what respect the sweeps of one row differ, where rows of the benchmark must not."""
    aspects = {
        "editions": {sweep.spec.edition for sweep in members},
        "agents": {sweep.spec.agent_id for sweep in members},
        "agent versions": {sweep.agent_version[:12] for sweep in members},
        "time limits": {f"{sweep.spec.time_limit_seconds / 3600:g} h" for sweep in members},
        "kinds of data": {"demo" if sweep.spec.demo else "real" for sweep in members},
    }
    for aspect, values in aspects.items():
        if len(values) > 1:
            return f"mixed {aspect}: {', '.join(sorted(values))}"
    return ""
