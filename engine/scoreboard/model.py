"""The scoreboard's data classes: evidence (runs and their conditions), and the rows made from it by `aggregation`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from mlebench_console.competitions import registry
from mlebench_console.engine.model_costs import CURRENCY, Spending, named
from mlebench_console.environment.gateway.prices import PriceTable
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.text import limit_text, plural
from mlebench_console.state.integrity import RunIntegrity
from mlebench_console.state.lifecycle import MEDALS, Outcome
from mlebench_console.state.records import Attempt, Submission

# The kinds of descriptions: those that name the competition, and those that hide it.
USUAL, OBFUSCATED = "usual", "obfuscated"

# The columns of the published leaderboard, and the split of each.
COLUMNS: Mapping[str, str] = {"low": "low", "medium": "medium", "high": "high", "all": "split75"}

Table = Literal["own", "imported", "main", "additional"]

# 95 % of a normal distribution lies within this many standard deviations of the mean.
_Z_95 = 1.96


class Measure(StrEnum):
    """What is counted over a split's competitions."""

    SUBMISSION = "submission"
    VALID = "valid"
    ABOVE_MEDIAN = "above_median"
    GOLD = "gold"
    SILVER = "silver"
    BRONZE = "bronze"
    ANY_MEDAL = "any_medal"

    @property
    def words(self) -> str:
        """Its name for people."""
        return self.value.replace("_", " ")


# The fields of a report, and the measures that they stand for.
FLAGS: Mapping[str, Measure] = {
    "any_medal": Measure.ANY_MEDAL,
    "gold_medal": Measure.GOLD,
    "silver_medal": Measure.SILVER,
    "bronze_medal": Measure.BRONZE,
    "above_median": Measure.ABOVE_MEDIAN,
    "submission_exists": Measure.SUBMISSION,
    "valid_submission": Measure.VALID,
}

# No submission comes with an imported report, so nothing here can tell whether its score is right.
REPORTED = "reported, not graded"

# In the order in which tables show them: the leaderboard's measure first.
MEASURES_BY_INTEREST = (
    Measure.ANY_MEDAL,
    Measure.GOLD,
    Measure.SILVER,
    Measure.BRONZE,
    Measure.ABOVE_MEDIAN,
    Measure.VALID,
    Measure.SUBMISSION,
)


@dataclass(frozen=True)
class Conditions:
    """The conditions that must be equal for runs to share a row.

    Attributes:
        hours: the time limit; None: unknown.
        hardware: the processors, memory and GPUs of a run.
        data: `real` or `demo`.
        descriptions: `usual`, or `obfuscated` where they hid the competition's name; empty: unknown.
        further: what else was asked for that an agent may notice, as texts by the names of options; None: unknown. It
            may differ within a row.
    """

    edition: str
    agent: str = ""
    agent_version: str = ""
    hours: float | None = None
    hardware: str = ""
    network: str = ""
    data: str = "real"
    descriptions: str = ""
    further: tuple[tuple[str, str], ...] | None = None


_PLURALS = {
    "edition": "editions",
    "agent": "agents",
    "agent_version": "agent versions",
    "hours": "time limits",
    "hardware": "hardware",
    "network": "network policies",
    "data": "kinds of data",
    "descriptions": "descriptions",
}


def differences(conditions: Iterable[Conditions], *, ignored: Sequence[str] = ()) -> tuple[str, ...]:
    """List the differences between conditions, one text each; an unknown value differs from no other."""
    compared = tuple(conditions)
    found = []
    for name, words in _PLURALS.items():
        known = {getattr(one, name) for one in compared} - {"", None}
        values = {limit_text(value) if name == "hours" else value for value in known}
        if len(values) > 1 and name not in ignored:
            found.append(f"mixed {words}: {', '.join(sorted(values))}")
    return tuple(found)


# The measures earned by each seed, by competition; the k-th result is seed k, whatever its run's own seed number.
Results = Mapping[str, Sequence[frozenset[Measure]]]


def results_of(earned: Iterable[tuple[str, frozenset[Measure] | None]]) -> Results:
    """Group earned measures by competition, in the order given; None counts for nothing."""
    found: defaultdict[str, list[frozenset[Measure]]] = defaultdict(list)
    for competition_id, measures in earned:
        if measures is not None:
            found[competition_id].append(measures)
    return found


def earned_by(competition_id: str, outcome: Outcome, score: float | None) -> frozenset[Measure]:
    """Return the measures that an outcome earns.

    A medal is not always above the median: in herbarium-2020 the cut-off of bronze is the median, and a
    tie with it is not above.
    """
    if outcome is Outcome.NO_SUBMISSION:
        return frozenset()
    if outcome is Outcome.INVALID:
        return frozenset({Measure.SUBMISSION})
    earned = {Measure.SUBMISSION, Measure.VALID}
    if outcome in MEDALS:
        earned |= {Measure(outcome.value), Measure.ANY_MEDAL}
    if outcome is Outcome.ABOVE_MEDIAN or (
        outcome in MEDALS and registry.get(competition_id).thresholds.above_median(score)
    ):
        earned.add(Measure.ABOVE_MEDIAN)
    return frozenset(earned)


def outcome_of(earned: frozenset[Measure]) -> Outcome:
    """Return the outcome that earns these measures."""
    for medal in (Outcome.GOLD, Outcome.SILVER, Outcome.BRONZE):
        if Measure(medal.value) in earned:
            return medal
    if Measure.VALID in earned:
        return Outcome.ABOVE_MEDIAN if Measure.ABOVE_MEDIAN in earned else Outcome.BELOW_MEDIAN
    return Outcome.INVALID if Measure.SUBMISSION in earned else Outcome.NO_SUBMISSION


@dataclass(frozen=True)
class Provenance:
    """The latest attempt of one of our own runs.

    Attributes:
        submissions: of the attempt, in order of time.
        classified: the run's failures that a person classified, each with who and why.
    """

    attempt: Attempt
    state_dir: Path
    submissions: tuple[Submission, ...]
    classified: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The attempt's directory."""
        return self.state_dir / self.attempt.directory

    @property
    def machine(self) -> str:
        """The hardware that it ran on, as text; empty: unknown."""
        return "" if self.attempt.hardware is None else self.attempt.hardware.in_words()

    @property
    def runtime(self) -> str:
        """The runtime in which an exported image ran, which each host chooses with `auto`; empty: none did."""
        is_of_image = self.attempt.image and self.attempt.runtime in protocol.OF_IMAGE_FILES
        return self.attempt.runtime if is_of_image else ""

    @property
    def image(self) -> str:
        """The digest of the image that the agent ran in, and what that was built from; empty: unknown."""
        built = f" (built from {self.attempt.recipe})" if self.attempt.recipe else ""
        return f"{self.attempt.image}{built}" if self.attempt.image else ""


class Counted(StrEnum):
    """How a run's model calls were counted."""

    GATEWAY = "by the gateway"
    BYTES = "by bytes only"
    NOT = "not counted"


@dataclass(frozen=True)
class TrialCosts:
    """The costs of the model calls of one of our own runs.

    Attributes:
        spending: of its latest attempt, whose result counts.
        earlier: of the attempts before that.
        sent_bytes, received_bytes: the traffic of its proxy, if it had one.
    """

    counted: Counted
    spending: Spending
    earlier: Spending
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def measured(self) -> Spending | None:
        """The spending of its latest attempt, if a gateway has counted it; otherwise None."""
        return self.spending if self.counted is Counted.GATEWAY else None


@dataclass(frozen=True)
class Trial:
    """One seed of one competition, and how it ended.

    Attributes:
        seed: the run's number; which seed it counts as depends on its place among the trials.
        earned: every measure it counts for; None when it counts for nothing: not ended, stopped by an
            operator, or lost for reasons that are not the agent's.
        ended: whether its result is final.
        queued: whether it waits for its start.
        seconds: how long the agent worked.
        failure: the class of its failure, empty where it did not fail.
        text: why there is no score, empty where there is one.
        decided_at: when that was known, in seconds since the epoch.
        run_id: our own run; None for an imported trial.
        provenance: of our own run, where its experiment was loaded by itself.
        integrity: what detectors and people say of it, likewise.
        costs: of our own run.
        note, tags: that people have put on our own run.
    """

    competition_id: str
    seed: int
    earned: frozenset[Measure] | None
    ended: bool = True
    queued: bool = False
    score: float | None = None
    seconds: float | None = None
    failure: str = ""
    text: str = ""
    rerolls: int = 0
    decided_at: float | None = None
    run_id: int | None = None
    provenance: Provenance | None = None
    integrity: RunIntegrity | None = None
    costs: TrialCosts | None = None
    note: str = ""
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its competition and seed, for people."""
        return f"{self.competition_id}, seed {self.seed}"

    @property
    def counts(self) -> bool:
        """Whether it has a result that counts."""
        return self.ended and self.earned is not None

    def has(self, measure: Measure) -> bool:
        """Return whether the trial earned a measure."""
        return self.earned is not None and measure in self.earned

    def earned_at(self, seconds: float) -> frozenset[Measure]:
        """Return the measures that the trial would have earned, had the agent been stopped then."""
        if self.seconds is not None and seconds >= self.seconds:
            return self.earned or frozenset()
        earned: frozenset[Measure] = frozenset()
        for one in self.provenance.submissions if self.provenance is not None else ():
            if one.elapsed_seconds <= seconds and one.standing is not None:
                earned = earned_by(self.competition_id, one.standing, one.score)
        return earned


@dataclass(frozen=True)
class Evidence:
    """Everything that one row is computed from, whether our own runs or imported reports.

    Attributes:
        trials: in the order in which they count as seeds.
        conditions: of the newest sweep, as the row shows them.
        conflict: the differences between its runs that forbid a common row; then there are no numbers.
        planned_seeds: how many seeds the sweeps asked for; None: unknown.
        created_at: of the newest sweep, in seconds since the epoch.
        gpus: how many GPUs one run had to itself, a fraction where runs share one; None: unknown.
        unavailable: competitions that are no longer offered, with the reason.
        prices: of model calls; None where the evidence has no record of model calls.
        sweep_ids: our own sweeps behind it.
    """

    table: Table
    name: str
    conditions: Conditions
    trials: tuple[Trial, ...]
    created_at: float
    planned_seeds: int | None = None
    conflict: str = ""
    note: str = ""
    llms: str = ""
    gpus: float | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)
    prices: PriceTable | None = None
    sweep_ids: tuple[str, ...] = ()

    # A frozen dataclass still has a dictionary, in which a cached property is stored.
    @cached_property
    def by_competition(self) -> Mapping[str, Sequence[Trial]]:
        """Its trials by competition, sorted by the competitions' names."""
        found: dict[str, list[Trial]] = {}
        for trial in sorted(self.trials, key=lambda trial: trial.competition_id.lower()):
            found.setdefault(trial.competition_id, []).append(trial)
        return found

    @property
    def competitions(self) -> tuple[str, ...]:
        """The competitions that it has runs for."""
        return tuple(self.by_competition)

    def labelled(self, *, agent: str = "", llms: str = "", hours: float | None = None) -> Evidence:
        """Return the evidence with what an operator adds to its row; empty values change nothing."""
        return replace(
            self,
            conditions=replace(
                self.conditions,
                agent=agent or self.conditions.agent,
                hours=self.conditions.hours if hours is None else hours,
            ),
            llms=llms or self.llms,
        )

    def counted(self, *, pad_missing: bool = False) -> tuple[tuple[Trial, frozenset[Measure]], ...]:
        """Return the trials that count and the measures that they earned, in the order in which they count as seeds.

        With padding, trials that ended without a result count as no medal, after all others: MLE-bench's padding
        knows only how many reports a competition lacks, and so puts the missing ones last.
        """
        found = [(one, one.earned) for one in self.trials if one.earned is not None]
        lost = [one for one in self.trials if one.earned is None and one.ended and pad_missing]
        return (*found, *((one, frozenset()) for one in lost))

    def results(self, *, pad_missing: bool = False) -> Results:
        """Return the measures that its trials earned, by competition; see `counted`."""
        counted = self.counted(pad_missing=pad_missing)
        return results_of((trial.competition_id, earned) for trial, earned in counted)


@dataclass(frozen=True)
class Cell:
    """A percentage over seeds: mean, standard error of the mean, and how many seeds (None: unknown).

    Attributes:
        competitions: how many competitions each seed's percentage is over; None: unknown.
    """

    mean: float
    sem: float
    n: int | None
    competitions: int | None = field(default=None, compare=False)

    @property
    def has_error(self) -> bool:
        """Whether its standard error is meaningful: one seed has none, though MLE-bench writes 0."""
        return self.n != 1

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the mean as MLE-bench computes it, which may exceed 0 and 100."""
        return self.mean - _Z_95 * self.sem, self.mean + _Z_95 * self.sem

    def wilson(self) -> tuple[float, float] | None:
        """Return the 95 % interval of Wilson's score for the share of runs, each counted as a trial of its own.

        It lies within 0 and 100, and is meaningful for one seed too. None where the number of runs is not known.
        """
        if not self.n or not self.competitions:
            return None
        runs, share, square = self.n * self.competitions, self.mean / 100, _Z_95**2
        middle = (share + square / (2 * runs)) / (1 + square / runs)
        half = _Z_95 / (1 + square / runs) * math.sqrt(share * (1 - share) / runs + square / (4 * runs**2))
        return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)

    def figures(self, decimals: int = 2, plus_minus: str = "± ") -> str:
        """Format mean and standard error; for one seed, the mean alone."""
        mean = f"{self.mean:.{decimals}f}"
        return f"{mean} {plus_minus}{self.sem:.{decimals}f}" if self.has_error else mean

    def __str__(self) -> str:
        """Format it as in the published table."""
        return f"{self.mean:.2f} ± {self.sem:.2f}"


@dataclass(frozen=True)
class Interim:
    """How far runs are before all have a result, and the bounds of their final any-medal percentage.

    Attributes:
        medals: how many runs have earned a medal.
        ended: how many have ended, with a result or without.
        counted: how many have a result that counts.
        runs: how many there are.
        seeds: how many seeds the final figure is over.
        low: the final percentage if no run without a result gets a medal.
        high: the final percentage if each of them gets one.
    """

    medals: int
    ended: int
    counted: int
    runs: int
    seeds: int
    low: float
    high: float

    @property
    def is_final(self) -> bool:
        """Whether every run has a result."""
        return self.counted == self.runs > 0

    def so_far_in_words(self) -> str:
        """Return how many of the ended runs have a medal: `14 medals of 41 ended`."""
        if not self.ended:
            return f"none of {plural(self.runs, 'run')} ended"
        return f"{plural(self.medals, 'medal')} of {self.ended:,} ended"

    def bounds_in_words(self) -> str:
        """Return the bounds of the final percentage: `final 6.2 to 88.0 %`."""
        return f"final {self.low:.1f} to {self.high:.1f} %"


@dataclass(frozen=True)
class Standing:
    """A row's result on one split: its cell, or, where the split is not fully covered, how much of it is.

    Attributes:
        cell: percentage with any medal; None where there is none (yet).
        covered: how many of the split's competitions the row has runs for.
        of: how many competitions the split has.
        measures: all percentages; empty where `cell` is None and for published rows.
        interim: how far its runs are; None where there are none, or where they can't make a row.
    """

    cell: Cell | None
    covered: int
    of: int
    measures: Mapping[Measure, Cell] = field(default_factory=dict)
    interim: Interim | None = None


@dataclass(frozen=True)
class Costs:
    """The costs of model calls, of the latest attempts of runs whose result counts.

    Attributes:
        runs: how many runs there are.
        measured: how many of them have calls counted by a gateway.
        estimated: how many of the measured runs have calls with estimated tokens.
        by_bytes: how many of all runs have calls counted by bytes only.
        sent_bytes, received_bytes: of the runs counted by bytes.
        spending: of the measured runs.
        priced: how many of the measured runs have a known cost.
        total: US dollars for the priced runs.
        medals: of the priced runs.
        aside: spending without a result: of earlier attempts, and of runs that do not count.
        price_date: when the prices were last compared with those of the providers.
        own_prices: the models priced by the operator's own prices.
        listed_prices: the models priced by genai-prices, as neither the operator nor the project gives their price.
        reported_costs: the models whose provider reports what calls cost.
    """

    runs: int
    measured: int
    estimated: int
    by_bytes: int
    sent_bytes: int
    received_bytes: int
    spending: Spending
    priced: int
    total: float
    medals: int
    aside: Spending
    price_date: str
    own_prices: tuple[str, ...]
    listed_prices: tuple[str, ...]
    reported_costs: tuple[str, ...]

    @property
    def tokens_per_run(self) -> float | None:
        """Average tokens of a measured run; None without one."""
        return self.spending.tokens / self.measured if self.measured else None

    @property
    def per_run(self) -> float | None:
        """US dollars per run, over the runs whose cost is known; None without one."""
        return self.total / self.priced if self.priced else None

    @property
    def per_medal(self) -> float | None:
        """US dollars per medal, over the runs whose cost is known; None without a medal."""
        return self.total / self.medals if self.medals else None

    @property
    def medals_per_100_dollars(self) -> float | None:
        """Medals per hundred US dollars, over the runs whose cost is known; None where they cost nothing."""
        return 100.0 * self.medals / self.total if self.total else None

    def counted_in_words(self) -> str:
        """Return how the calls were counted, and in how many runs."""
        uncounted = self.runs - self.measured - self.by_bytes
        parts = [f"counted by the gateway in {self.measured} of {self.runs} runs"]
        if self.estimated:
            parts.append(f"in {self.estimated} of these some tokens are estimated")
        if self.by_bytes:
            passed = f"{self.sent_bytes:,} sent, {self.received_bytes:,} received"
            parts.append(f"counted by bytes only in {self.by_bytes} ({passed})")
        if uncounted:
            parts.append(f"not counted in {uncounted}")
        return ", ".join(parts)

    def tokens_in_words(self) -> str:
        """Return the tokens as text; empty where none were measured."""
        if not self.measured:
            return ""
        return (
            f"{self.spending.input_tokens:,} in ({self.spending.cached_tokens:,} read from caches,"
            f" {self.spending.cache_write_tokens:,} written to them), {self.spending.output_tokens:,} out"
            f" ({self.spending.reasoning_tokens:,} reasoning), {self.tokens_per_run:,.0f} a run"
        )

    def cost_in_words(self) -> str:
        """Return the cost of the calls, over how many runs and by which prices; empty where none were measured."""
        if not self.measured:
            return ""
        parts = (
            [] if self.per_run is None else [f"{self.total:,.2f} {CURRENCY}", f"{self.per_run:,.2f} a run"]
        )
        if self.per_medal is not None:
            parts.append(f"{self.per_medal:,.2f} a medal")
        text = ", ".join(parts) or "not known"
        if self.priced < self.measured:
            unpriced = named(self.spending.unpriced)
            text += f", over {self.priced} of {self.measured} measured runs (no price of {unpriced})"
        if self.aside.least_cost:
            text += f"; beside these {self.aside.least_cost:,.2f} for attempts without a result"
        own = f", of {named(self.own_prices)} the operator's own" if self.own_prices else ""
        listed = f", of {named(self.listed_prices)} by genai-prices" if self.listed_prices else ""
        reported = (
            f", of {named(self.reported_costs)} as reported by the provider" if self.reported_costs else ""
        )
        return f"{text}; prices of {self.price_date}{own}{listed}{reported}"

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return {
            "runs": self.runs,
            "measured": self.measured,
            "estimated": self.estimated,
            "by_bytes": self.by_bytes,
            "sent_bytes": self.sent_bytes,
            "received_bytes": self.received_bytes,
            "priced": self.priced,
            "spending": self.spending.document(),
            "total": self.total if self.priced else None,
            "currency": CURRENCY,
            "tokens_per_run": self.tokens_per_run,
            "cost_per_run": self.per_run,
            "cost_per_medal": self.per_medal,
            "medals_per_100_dollars": self.medals_per_100_dollars,
            "aside": self.aside.document(),
            "price_date": self.price_date,
            "own_prices": list(self.own_prices),
            "genai_prices": list(self.listed_prices),
            "reported_costs": list(self.reported_costs),
        }


@dataclass(frozen=True)
class Row:
    """One row of the scoreboard, ours or published.

    Attributes:
        table: our own runs, imported reports, or one of the two published tables.
        name: the agent of a published row; the experiment, or the sweep without one, of our own.
        agent: the agent's id.
        columns: by column name (`COLUMNS`, then the names of user-made splits).
        own: over exactly the competitions that the row has runs for; None for published rows.
        seeds_done: seeds that every competition of the row has finished; None: unknown.
        seeds_planned: seeds that the sweeps asked for; None: unknown.
        running: whether some of its runs have not ended.
        padded: whether missing results were counted as no medal.
        rerolled: how many runs were relaunched though the agent itself had failed.
        conflict: why its runs can't share a row; then it has no cells.
        costs: of its model calls; None where nothing is known of them.
    """

    table: Table
    name: str
    agent: str
    llms: str
    columns: Mapping[str, Standing]
    own: Standing | None
    hours: float | None
    date: str
    edition: str
    seeds_done: int | None = None
    seeds_planned: int | None = None
    running: bool = False
    demo: bool = False
    padded: bool = False
    rerolled: int = 0
    source_available: bool | None = None
    reports_available: bool | None = None
    note: str = ""
    conflict: str = ""
    costs: Costs | None = None
