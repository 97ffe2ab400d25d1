"""Make evidence from our own runs: each experiment's attempts and submissions as the state records them.

Evidence from imported reports is in `engine.scoreboard.reports`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mlebench_console.engine.model_costs import spending_of
from mlebench_console.engine.options.sweep import OPTIONS
from mlebench_console.engine.scoreboard.model import (
    OBFUSCATED,
    USUAL,
    Conditions,
    Counted,
    Evidence,
    Measure,
    Provenance,
    Trial,
    TrialCosts,
    differences,
    earned_by,
)
from mlebench_console.environment.gateway.prices import PriceTable, price_table
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import datasets, experiments, integrity, runs, submissions, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import RunIntegrity
from mlebench_console.state.lifecycle import ENGINE, FailureClass, Outcome, RunState
from mlebench_console.state.records import IMPORTED, DatasetState, Experiment, Run, Sweep
from mlebench_console.state.usage import model_calls, network_use
from mlebench_console.state.usage.model_calls import UseOfRun

_GIB = 1 << 30
# The conditions of a run that `Conditions` has in words of its own, and those that make no difference to an agent.
_IN_OWN_WORDS = frozenset(
    {
        *("edition", "obfuscated", "time_limit_seconds", "network", "runtime", "container_runtime"),
        *("cpus", "memory_bytes", "gpus", "runs_per_gpu"),
    }
)
_UNNOTICED = frozenset(
    {"placement", "grace_seconds", "grade_every_seconds", "keep_containers", "record_calls"}
)


def own_evidence(database: Database, prices: PriceTable | None = None) -> tuple[Evidence, ...]:
    """Gather every experiment, and every sweep that belongs to none, newest first.

    Without `prices`, model calls are priced by the project's own table.
    """
    records = _Records(
        model_calls.by_run(database), prices or price_table({}), network_use.latest_by_run(database)
    )
    runs_of: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs.of_all_sweeps(database):
        runs_of[run.sweep_id].append(run)
    return tuple(
        records.evidence_of(one, members, [runs_of[sweep.id] for sweep in members])
        for one, members in _experiments(database)
    )


def find_evidence(database: Database, name: str, prices: PriceTable | None = None) -> Evidence:
    """Gather one experiment or sweep, named in full or by a unique prefix, with the provenance of its runs.

    Raises:
        UsageProblem: no experiment matches the name, or several do.
    """
    experiment, members = _experiment_named(database, name)
    runs_of = [runs.of_sweep(database, sweep.id) for sweep in members]
    every = [run for part in runs_of for run in part]
    records = _Records(
        {
            run_id: uses
            for sweep in members
            for run_id, uses in model_calls.by_run(database, sweep.id).items()
        },
        prices or price_table({}),
        network_use.latest_by_run(database),
        {run.id: _provenance(database, run) for run in every},
        integrity.of_runs(database, [run.id for run in every]),
    )
    unavailable = {
        dataset.competition_id: "no longer offered by Kaggle, asked "
        + datetime.fromtimestamp(dataset.updated_at, UTC).date().isoformat()
        for dataset in datasets.in_state(database, DatasetState.UNAVAILABLE)
    }
    return replace(records.evidence_of(experiment, members, runs_of), unavailable=unavailable)


def _experiment_named(database: Database, name: str) -> tuple[Experiment, Sequence[Sweep]]:
    every = _experiments(database, with_members=True)
    matching = [one for one in every if one[0].id == name] or [
        one for one in every if one[0].id.startswith(name)
    ]
    if not matching:
        raise UsageProblem(
            f"there is no experiment or sweep '{name}'", "", "'mlebench-console scoreboard --own' lists them."
        )
    if len(matching) > 1:
        several = ", ".join(one.id for one, _members in matching[:5])
        raise UsageProblem(f"'{name}' matches several experiments", several, "Give more of the name.")
    return matching[0]


def _experiments(
    database: Database, *, with_members: bool = False
) -> Sequence[tuple[Experiment, Sequence[Sweep]]]:
    """List all experiments with their sweeps, and each sweep that belongs to none as one, newest first.

    The sweeps are in the order in which their seeds count. With members, each sweep of an experiment is listed on its
    own too, unless it has the experiment's name.
    """
    by_id = {sweep.id: sweep for sweep in sweeps.all_sweeps(database)}
    listed = [one for one in experiments.all_experiments(database) if one.sweep_ids]
    taken = {name for one in listed for name in ((one.id,) if with_members else one.sweep_ids)}
    listed += [
        Experiment(sweep.id, sweep.created_at, (sweep.id,))
        for sweep in by_id.values()
        if sweep.id not in taken
    ]
    found = [(one, [by_id[sweep_id] for sweep_id in one.sweep_ids]) for one in listed]
    return sorted(found, key=lambda each: each[1][-1].created_at)[::-1]


@dataclass(frozen=True)
class _Records:
    """What the state has on runs beside their outcomes, by the runs' numbers, and the prices of model calls.

    Attributes:
        provenance, integrity: of the runs of one experiment that is loaded by itself.
    """

    uses: Mapping[int, Sequence[UseOfRun]]
    prices: PriceTable
    traffic: Mapping[int, tuple[int, int]]
    provenance: Mapping[int, Provenance | None] = field(default_factory=dict)
    integrity: Mapping[int, RunIntegrity] = field(default_factory=dict)

    def evidence_of(
        self, experiment: Experiment, members: Sequence[Sweep], runs_of: Sequence[Sequence[Run]]
    ) -> Evidence:
        """Gather an experiment from its sweeps and the runs of each."""
        newest = members[-1]
        resources = newest.conditions.resources
        conditions = [_conditions_of(sweep, part) for sweep, part in zip(members, runs_of, strict=True)]
        gpus_known = resources.gpus >= 0 and newest.conditions.runtime != IMPORTED
        return Evidence(
            table="own",
            name=experiment.id,
            conditions=conditions[-1],
            trials=tuple(
                self._trial_of(run, sweep.conditions)
                for sweep, part in zip(members, runs_of, strict=True)
                for run in sorted(part, key=lambda run: run.seed)
            ),
            created_at=newest.created_at,
            planned_seeds=sum(sweep.spec.seeds for sweep in members),
            conflict="; ".join(differences(conditions)),
            note=newest.note if newest.id == experiment.id else "",
            gpus=resources.gpus * resources.gpu_share if gpus_known else None,
            prices=self.prices,
            sweep_ids=experiment.sweep_ids,
        )

    def _trial_of(self, run: Run, conditions: RunConditions) -> Trial:
        uses = self.uses.get(run.id, ())
        costs = TrialCosts(
            _counted(conditions),
            spending_of((use for use in uses if use.is_latest), self.prices),
            spending_of((use for use in uses if not use.is_latest), self.prices),
            *self.traffic.get(run.id, (0, 0)),
        )
        return replace(
            trial_of(run),
            costs=costs,
            provenance=self.provenance.get(run.id),
            integrity=self.integrity.get(run.id),
        )


def _counted(conditions: RunConditions) -> Counted:
    if conditions.models.gateway:
        return Counted.GATEWAY
    return Counted.BYTES if conditions.network == "models" else Counted.NOT


def _conditions_of(sweep: Sweep, members: Sequence[Run]) -> Conditions:
    """Return the conditions of a sweep's runs; one run on demo data marks the whole sweep as demo."""
    conditions, is_known = sweep.conditions, sweep.conditions.runtime != IMPORTED
    descriptions = OBFUSCATED if conditions.obfuscated else USUAL
    return Conditions(
        edition=conditions.edition,
        agent=sweep.spec.agent_id,
        agent_version=sweep.agent_version[:12],
        hours=conditions.time_limit_seconds / 3600 or None,
        hardware=_hardware_of(conditions) if is_known else "",
        network=conditions.network,
        data="demo" if any(run.demo for run in members) else "real",
        descriptions=descriptions if is_known else "",
        further=_further(conditions) if is_known else None,
    )


def _further(conditions: RunConditions) -> tuple[tuple[str, str], ...]:
    """Return the other conditions that are not as usual, as texts by the names of their options."""
    kept = {name: value for name, value in flat(conditions).items() if name not in _IN_OWN_WORDS | _UNNOTICED}
    return tuple(
        (option.name, option.to_text(value))
        for option in OPTIONS
        if option.kept_as in kept and (value := option.from_kept(kept[option.kept_as])) is not None
    )


def _hardware_of(conditions: RunConditions) -> str:
    """Return the processors, memory and GPUs of a run in one line."""
    resources = conditions.resources
    parts = [f"{resources.cpus:g} CPU"]
    memory = resources.memory_bytes
    parts.append("no memory limit" if memory is None else f"{memory / _GIB:g} GiB")
    if resources.gpus:
        shared = f" for {resources.runs_per_gpu} runs each" if resources.runs_per_gpu > 1 else ""
        parts.append(f"{'all GPUs' if resources.gpus < 0 else f'{resources.gpus} GPU'}{shared}")
    return " + ".join([*parts, f"runtime {conditions.container_runtime or conditions.runtime}"])


def trial_of(run: Run) -> Trial:
    """Return a run as a trial: an agent's own failure is a result without a submission, as in MLE-bench.

    A run that infrastructure lost or an operator stopped counts for nothing until it is run again.
    """
    return Trial(
        competition_id=run.competition_id,
        seed=run.seed,
        earned=_earned(run),
        ended=run.has_ended,
        queued=run.state is RunState.QUEUED,
        score=run.score,
        seconds=None if run.started_at is None or run.ended_at is None else run.ended_at - run.started_at,
        failure=run.failure_class or "",
        text=_reason(run),
        rerolls=run.rerolls,
        decided_at=run.ended_at,
        run_id=run.id,
        note=run.note,
        tags=tuple(tag.name for tag in run.tags),
    )


def _earned(run: Run) -> frozenset[Measure] | None:
    if run.state is RunState.FAILED:
        counts = run.failure_class is not FailureClass.INFRASTRUCTURE and not run.excused
        return frozenset() if counts else None
    if run.state is not RunState.FINISHED or run.outcome is None:
        return None
    return earned_by(run.competition_id, run.outcome, run.score)


def _reason(run: Run) -> str:
    if run.state is RunState.FAILED:
        return run.failure_text
    if run.state is RunState.STOPPED:
        return "stopped by an operator"
    if run.outcome in (Outcome.NO_SUBMISSION, Outcome.INVALID):
        return "no submission" if run.outcome is Outcome.NO_SUBMISSION else "invalid submission"
    return ""


def _provenance(database: Database, run: Run) -> Provenance | None:
    attempts = runs.attempts(database, run.id)
    if not attempts:
        return None
    return Provenance(
        attempt=attempts[-1],
        state_dir=database.path.parent,
        submissions=tuple(submissions.of_attempt(database, attempts[-1].id)),
        classified=tuple(
            f"{one.failure_class} by {one.classified_by}: {one.failure_text}"
            for one in attempts
            if one.classified_by not in ("", ENGINE)
        ),
    )
