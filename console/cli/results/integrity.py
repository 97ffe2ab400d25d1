"""`integrity`: search runs for signs that scores were not earned, show the findings, and review them."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.console.cli.common import CompetitionIds, Context, DataDir, EditionFlag, new_group
from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_texts, show_count
from mlebench_console.engine.places import Places
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.problems import UsageProblem, writing
from mlebench_console.foundation.text import plural
from mlebench_console.state import integrity, runs
from mlebench_console.state import runs as all_runs
from mlebench_console.state.database import Database, open_for_reading
from mlebench_console.state.integrity import Layer, RunIntegrity
from mlebench_console.state.records import Run

if TYPE_CHECKING:
    from mlebench_console.engine.integrity.endpoint import Endpoint
    from mlebench_console.engine.integrity.material import ExaminedRun
    from mlebench_console.engine.requests import NewResults

app = new_group()
kernels_app = new_group("Fetch the public kernels that code is compared with, and list them.")
app.add_typer(kernels_app, name="kernels")

Source = Annotated[str | None, Argument(metavar="EXPERIMENT", help="An experiment or sweep: its ended runs.")]
Runs = Annotated[list[int] | None, Option("--runs", metavar="N", help="A run by its number; repeatable.")]
KernelsDir = Annotated[
    Path | None,
    Option("--kernels-dir", metavar="DIR", help="The folder of public kernels; by default beside the data."),
]
Model = Annotated[
    str, Option("--model", metavar="PROVIDER/MODEL", help="The model to ask, such as openai/gpt-4o-mini.")
]
Budget = Annotated[
    float | None,
    Option("--budget", metavar="USD", min=0, help="The most that new answers may cost, in US dollars."),
]
Jobs = Annotated[int, Option("--jobs", "-j", min=1, max=64, help="Calls at once.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Don't ask before it starts.")]
_AT_ONCE = 25


@app.command("run")
def look(
    context: Context,
    experiment: Source = None,
    runs: Runs = None,
    layer: Annotated[
        list[Layer] | None, Option(help="Only this layer; repeatable. By default all that need no model.")
    ] = None,
    again: Annotated[bool, Option(help="Search also runs that were searched and have not changed.")] = False,
    kernels_dir: KernelsDir = None,
) -> None:
    """Search runs for signs of cheating; may be interrupted, as runs searched before are skipped."""
    from mlebench_console.engine.integrity import facts, plagiarism
    from mlebench_console.engine.integrity.material import examined_runs

    layers = layer or [Layer.FACTS, Layer.PLAGIARISM]
    if Layer.JUDGE in layers:
        raise UsageProblem(f"the layer {Layer.JUDGE} needs a model", "", "Use 'integrity judge --model'.")
    clock = SystemClock()
    with context.engine() as places:
        with closing(open_for_reading(places.state_dir)) as database:
            wanted = run_ids_of(database, experiment, runs)
            chosen = examined_runs(database, wanted)
            known = {} if again else integrity.of_runs(database, wanted)
            others = examined_runs(database, _others(database, chosen)) if Layer.PLAGIARISM in layers else []
        if Layer.FACTS in layers:
            take_in(places, facts.examine(chosen, known, clock), len(chosen), Layer.FACTS)
        if Layer.PLAGIARISM in layers:
            compared = plagiarism.examine(chosen, others, known, clock, _kernels_dir(context, kernels_dir))
            take_in(places, compared, len(chosen), Layer.PLAGIARISM)
    with context.reading_state() as database:
        _say_all(context, database, wanted)


@app.command()
def judge(
    context: Context,
    experiment: Source = None,
    runs: Runs = None,
    model: Model = "",
    questions: Annotated[Path | None, Option(metavar="FILE", help="Questions of your own, as TOML.")] = None,
    windows: Annotated[
        int, Option(metavar="N", min=1, help="How many windows of a run are read at most.")
    ] = 12,
    budget: Budget = None,
    jobs: Jobs = 4,
    yes: Yes = False,
    again: Annotated[
        bool, Option(help="Judge also what has been judged so; earlier answers still count.")
    ] = False,
    mlebench_format: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Write also the CSV and the summary that MLE-bench's rule violation detector writes.",
        ),
    ] = None,
) -> None:
    """Ask a model whether runs broke rules: answers typed in, models of others called, resources not given.

    What rules find is read first, every answer must quote what it read, and what goes wrong counts as unsure. Answers
    are kept: the same command goes on where it was interrupted, or where a budget was used up.
    """
    from mlebench_console.engine.integrity import judged_runs
    from mlebench_console.engine.integrity.judge import QUESTIONS, Judge, read_questions
    from mlebench_console.engine.integrity.material import examined_runs

    endpoint = _endpoint(context, model, budget, jobs)
    asked = (*QUESTIONS, *(() if questions is None else read_questions(questions)))
    judge = Judge(endpoint, asked)
    with context.engine() as places:
        with closing(open_for_reading(places.state_dir)) as database:
            wanted = run_ids_of(database, experiment, runs)
            chosen = examined_runs(database, wanted)
            known = integrity.of_runs(database, wanted)
        tell, found = show_count("reading"), []
        reading = judged_runs.gather(chosen, asked, str(endpoint.model), windows, known, again=again)
        for number, one in enumerate(reading, 1):
            found += [] if one is None else [one]
            tell(number, len(chosen))
        if found:
            estimate = judge.estimate(window for one in found for window in one.windows)
            read, there = sum(len(one.windows) for one in found), sum(one.total for one in found)
            about = (
                f"{read:,} of {there:,} windows of {plural(len(found), 'run')}:"
                f" about {plural(estimate.calls, 'call')} to {endpoint.model},"
                f" of which {estimate.cached:,} are answered already"
            )
            new = estimate.calls - estimate.cached
            _agree_to_cost(
                about, endpoint, new, estimate.input_tokens, tokens_out=estimate.output_tokens, yes=yes
            )
        elif chosen:
            say_on_stderr("all of these runs have been judged so; --again judges them once more")
        new_results = judged_runs.examine(found, judge, SystemClock())
        take_in(places, new_results, len(found), Layer.JUDGE, at_once=judged_runs.AT_ONCE)
    _say_spent(endpoint)
    with context.reading_state() as database:
        if mlebench_format is not None:
            results = integrity.of_runs(database, wanted)
            paths = judged_runs.write_mlebench_format(
                mlebench_format, chosen, results, asked, SystemClock().now()
            )
            say_on_stderr(f"written: {', '.join(map(str, paths))}")
        _say_all(context, database, wanted)


@app.command()
def familiarity(
    context: Context,
    model: Model = "",
    experiment: Annotated[
        str | None, Option(metavar="SOURCE", help="Whose results are compared with familiarity.")
    ] = None,
    competition_id: CompetitionIds = None,
    documents: Annotated[
        Path | None, Option(metavar="DIR", help="More texts: ID.md, ID.txt, or such files in a folder ID.")
    ] = None,
    places: Annotated[int, Option(metavar="N", min=1, help="At how many places of a text at most.")] = 1000,
    edition: EditionFlag = "v1",
    data_dir: DataDir = None,
    plot: Annotated[Path | None, Option(metavar="FILE", help="Draw it as .svg, .png or .pdf.")] = None,
    budget: Budget = None,
    jobs: Jobs = 4,
    yes: Yes = False,
) -> None:
    """Measure how well a model knows the texts of competitions, and whether results are better where it does.

    It is the mean probability of the true tokens at sampled places, as MLE-bench measures it. A server with completions
    is needed that tells the probabilities of a prompt (vLLM's prompt_logprobs, or echo), or else of the next token.
    """
    from mlebench_console.console.cli.results.scoreboard import evidence_for
    from mlebench_console.engine.integrity import familiarity as measuring
    from mlebench_console.engine.scoreboard import plots

    if experiment is None and not competition_id:
        raise UsageProblem("which competitions?", "", "Give --experiment, or -c ID for single ones.")
    form = "" if plot is None else plot.suffix.removeprefix(".")
    if plot is not None and form not in plots.FORMS:
        raise UsageProblem(f"{plot} can't be drawn", "", f"Its name must end with {', '.join(plots.FORMS)}.")
    base = context.data_dir(data_dir)
    evidence = None if experiment is None else evidence_for(context, [experiment])
    if evidence is not None:
        edition = edition_named(evidence.conditions.edition)
    names = competition_id or ([] if evidence is None else evidence.competitions)
    endpoint = _endpoint(context, model, budget, jobs)
    texts, descriptions = [], {}
    for name in names:
        found, descriptions[name] = measuring.documents_of(registry.get(name), base, edition, documents)
        texts += found
    calls, tokens = measuring.ProbabilityReader(endpoint, places).estimate(texts)
    about = (
        f"{plural(len(texts), 'text')} of {plural(len(names), 'competition')}: about {plural(calls, 'call')}"
    )
    about += f" to {endpoint.model}"
    more = ", or one for each place where it does not tell the probabilities of a prompt"
    _agree_to_cost(f"{about}{more if calls else ''}", endpoint, calls, tokens, tokens_out=calls, yes=yes)
    measured, method = measuring.measure(texts, endpoint, places, show_count("texts"))
    if evidence is not None:
        measured = measuring.with_performance(measured, evidence, base)
    related = measuring.correlation(measured)
    if plot is not None:
        drawn = plots.picture(measuring.plot_of(measured, str(endpoint.model), related), form)
        with writing(plot):
            plot.write_bytes(drawn)
    _say_spent(endpoint)
    if context.json:
        say_json(
            {
                "model": str(endpoint.model),
                "method": method,
                "correlation": None if related is None else asdict(related),
                "competitions": [
                    asdict(one)
                    | {"probability": one.probability, "descriptions": descriptions[one.competition_id]}
                    for one in measured
                ],
            }
        )
        return
    say_texts(
        ("competition", "familiarity", "texts", "places", "performance", "problem"),
        [
            (
                one.competition_id,
                "-" if one.probability is None else f"{one.probability:.3f}",
                str(len(one.documents)),
                str(sum(text.places for text in one.documents)),
                "-" if one.performance is None else f"{one.performance:+.3f}",
                "; ".join(filter(None, (*(text.problem for text in one.documents), one.problem))),
            )
            for one in sorted(measured, key=lambda one: -(one.probability or 0.0))
        ],
        right=("familiarity", "texts", "places", "performance"),
    )
    own_texts = sum(whose in ("ours", "obfuscated") for whose in descriptions.values())
    if own_texts:
        say(
            f"\n{own_texts} of the descriptions are this project's own, which say little about what a model has seen:"
            " prepare with --descriptions kaggle, or give --documents"
        )
    if related is not None:
        say(
            f"\nSpearman's rho {related.rho:+.2f} between familiarity and performance over {related.competitions}"
            f" competitions, p = {related.p_value:.4f} by permutation"
        )
    elif evidence is not None:
        say("\nfewer than three competitions have both, so that nothing can be said of a correlation")


def _endpoint(context: Context, model: str, budget: float | None, jobs: int) -> Endpoint:
    """Return the endpoint that a command names, with the operator's key."""
    from mlebench_console.engine.integrity.endpoint import Endpoint, model_named
    from mlebench_console.engine.integrity.judged_runs import ANSWERS

    if not model:
        raise UsageProblem("which model?", "", "Give --model PROVIDER/MODEL, such as openai/gpt-4o-mini.")
    own = context.places
    chosen = model_named(model, own.config_file, os.environ)
    return Endpoint(chosen, context.prices, own.state_dir / ANSWERS, budget=budget, jobs=jobs)


def _agree_to_cost(
    about: str, endpoint: Endpoint, calls: int, tokens_in: int, *, tokens_out: int, yes: bool
) -> None:
    """Print what the calls will cost, and ask whether to make them."""
    dollars = endpoint.cost_of(tokens_in, tokens_out)
    cost = "at a price that is not known" if dollars is None else f"about {dollars:,.2f} $"
    say_on_stderr(f"{about}; about {tokens_in:,} tokens, {cost}")
    if not calls or yes:
        return
    if not sys.stdin.isatty():
        raise UsageProblem(
            "nothing was asked", "this may cost money", "Give --yes to do it without being asked."
        )
    typer.confirm("Ask the model?", abort=True, err=True)


def _say_spent(endpoint: Endpoint) -> None:
    spent = endpoint.spent
    cost = "at a price that is not known" if spent.cost is None else f"for {spent.cost:,.2f} $"
    say_on_stderr(
        f"{plural(spent.calls, 'call')} to {endpoint.model} with {spent.input_tokens:,} tokens in and"
        f" {spent.output_tokens:,} out, {cost}; {endpoint.reused:,} were answered already"
    )


@app.command()
def show(context: Context, experiment: Source = None, runs: Runs = None) -> None:
    """Show the findings, gravest first; for a single run with the passages and figures behind them."""
    with context.reading_state() as database:
        _say_all(context, database, run_ids_of(database, experiment, runs))


@app.command()
def review(
    context: Context,
    run_id: Annotated[int, Argument(metavar="RUN", help="The run's number.")],
    finding: Annotated[str, Argument(metavar="FINDING", help="The finding's key, as 'show' names it.")],
    reason: Annotated[str, Option(metavar="TEXT", help="Why; it is disclosed in the row.")],
    cleared: Annotated[
        bool, Option("--clear/--confirm", help="Whether the finding is harmless, or confirmed.")
    ] = True,
) -> None:
    """Clear or confirm a finding, with a reason that is kept and disclosed."""
    from mlebench_console.console.actions import integrity

    action = integrity.review(run_id, finding, cleared=cleared, reason=reason)
    context.perform(action, starting=True)


@kernels_app.command("fetch")
def fetch_kernels(
    context: Context,
    competition_id: CompetitionIds = None,
    again: Annotated[bool, Option(help="Try again to download those that could not be downloaded.")] = False,
    kernels_dir: KernelsDir = None,
) -> None:
    """Download public kernels with your own Kaggle account; those already here are skipped."""
    from mlebench_console.engine.integrity.kernels import fetch, known_kernels
    from mlebench_console.engine.kaggle.client import Kaggle

    folder = _kernels_dir(context, kernels_dir)
    wanted = _competitions_with_kernels(competition_id)
    total = sum(len(known_kernels()[name]) for name in wanted)
    tell = show_count("kernels")
    outcomes: Counter[str] = Counter()
    with Kaggle() as kaggle:
        for done, one in enumerate(fetch(folder, wanted, kaggle, again=again), start=1):
            outcomes[one.outcome] += 1
            tell(min(done, total), total)
    listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    text = f"{listed or 'nothing was missing'}; in {folder}, for yourself: their licences are their authors'"
    context.say_result({"folder": str(folder), "fetched": dict(outcomes)}, text)


@kernels_app.command("list")
def list_kernels(
    context: Context, competition_id: CompetitionIds = None, kernels_dir: KernelsDir = None
) -> None:
    """List how many kernels of each competition are known, and how many are downloaded."""
    from mlebench_console.engine.integrity.kernels import KernelOutcome, fetched, known_kernels

    folder = _kernels_dir(context, kernels_dir)
    rows = []
    for name in _competitions_with_kernels(competition_id):
        outcomes = [one.outcome for one in fetched(folder, name).values()]
        rows.append((name, len(known_kernels()[name]), outcomes.count(KernelOutcome.OK)))
    if context.json:
        say_json([{"competition_id": name, "known": known, "here": here} for name, known, here in rows])
        return
    texts = [(name, str(known), str(here)) for name, known, here in rows]
    say_texts(("competition", "known", "here"), texts, right=("known", "here"))


def _kernels_dir(context: Context, given: Path | None) -> Path:
    from mlebench_console.engine.integrity.kernels import FOLDER

    return given.expanduser().absolute() if given is not None else context.places.data_dir / FOLDER


def _competitions_with_kernels(chosen: Collection[str] | None) -> list[str]:
    """Return the competitions with known kernels: the chosen ones, or all.

    Raises:
        UsageProblem: of one of them none is known.
    """
    from mlebench_console.engine.integrity.kernels import known_kernels

    for name in chosen or ():
        if name not in known_kernels():
            raise UsageProblem(
                f"no public kernels of '{name}' are known",
                "",
                "'integrity kernels list' names the competitions.",
            )
    return list(dict.fromkeys(chosen or known_kernels()))


def _others(database: Database, chosen: Collection[ExaminedRun]) -> list[int]:
    """Return the ended runs of the same competitions that are not among the chosen."""
    names = {one.run.competition_id for one in chosen}
    own = {one.run.id for one in chosen}
    return [
        one.id
        for one in runs.of_all_sweeps(database)
        if one.has_ended and one.competition_id in names and one.id not in own
    ]


def run_ids_of(database: Database, experiment: str | None, runs: Collection[int] | None) -> list[int]:
    """Return the numbers of the ended runs that a command names.

    Raises:
        UsageProblem: it names none, or one that has not ended.
    """
    from mlebench_console.engine.scoreboard.own_runs import find_evidence

    if (experiment is None) == (not runs):
        raise UsageProblem(
            "which runs?", "", "Name an experiment or sweep, or single runs with --runs N; not both."
        )
    if experiment is not None:
        trials = find_evidence(database, experiment).trials
        return [one.run_id for one in trials if one.run_id is not None and one.ended]
    for number in runs or ():
        if not all_runs.get(database, number).has_ended:
            raise UsageProblem(f"run {number} has not ended", "", "Look when it has.")
    return list(dict.fromkeys(runs or ()))


def take_in(
    places: Places, looked_at: Iterable[NewResults], total: int, layer: Layer, *, at_once: int = _AT_ONCE
) -> None:
    """Have the engine store the findings, some runs at a time, and show the progress."""
    from mlebench_console.engine.control import ask
    from mlebench_console.engine.requests import RecordIntegrity

    tell = show_count(f"{layer}")
    waiting = iter(looked_at)
    done = 0
    while batch := tuple(islice(waiting, at_once)):
        ask(places, RecordIntegrity(results=batch))
        done += len(batch)
        tell(done, total)
    tell(total, total)


def _say_all(context: Context, database: Database, run_ids: Collection[int]) -> None:
    known = integrity.of_runs(database, run_ids)
    found = sorted(known.values(), key=lambda one: (-one.severity.rank, one.run_id))
    members = {one.run_id: runs.get(database, one.run_id) for one in found}
    if context.json:
        say_json([_document(one, members[one.run_id]) for one in found])
        return
    if len(found) == 1:
        _say_run(found[0], members[found[0].run_id])
        return
    flagged = [one for one in found if one.severity.is_flag]
    if flagged:
        say_texts(
            ("run", "competition", "seed", "severity", "what was found"),
            [
                (
                    str(one.run_id),
                    members[one.run_id].competition_id,
                    str(members[one.run_id].seed),
                    one.severity,
                    _gravest(one),
                )
                for one in flagged
            ],
            right=("run", "seed"),
        )
        say()
    looked = sum(bool(one.results) for one in found)
    say(f"{looked} of {len(found)} runs looked at, {len(flagged)} flagged; nothing is excluded by itself")


def _gravest(known: RunIntegrity) -> str:
    """Return the gravest finding that is not cleared, and the number of others."""
    flags = known.flags()
    more = f" (and {len(flags) - 1} more)" if len(flags) > 1 else ""
    return f"{flags[0].statement}{more}" if flags else ""


def _say_run(known: RunIntegrity, run: Run) -> None:
    """Print all findings of one run by detector, with passages and figures."""
    say(f"run {run.id}  {run.competition_id}, seed {run.seed}  {known.severity}")
    for result in known.results:
        for finding in sorted(result.findings, key=lambda one: -one.severity.rank):
            say(f"\n{finding.key}  {finding.severity:<10}  {result.layer}/{result.detector}")
            say(f"    {finding.statement}")
            if finding.numbers:
                say("    " + ", ".join(f"{name} {value:g}" for name, value in finding.numbers.items()))
            for excerpt in finding.excerpts:
                say(f"    {excerpt.place}")
                say("\n".join(f"    | {line}" for line in excerpt.text.split("\n")))
            review = known.review_of(finding)
            if review is not None:
                verb = "cleared" if review.cleared else "confirmed"
                say(f"    {verb} by {review.author}: {review.reason}")
        if result.problem:
            say(f"\n{result.layer}/{result.detector} could not look: {result.problem}")
        if result.coverage:
            say(f"\n{result.layer}/{result.detector}: {result.coverage}")
    clean = [result.detector for result in known.results if not result.findings and not result.problem]
    if clean:
        say(f"\nnothing found by {', '.join(clean)}")
    if not known.results:
        say("\nnobody has looked yet: mlebench-console integrity run")


def _document(known: RunIntegrity, run: Run) -> dict[str, Any]:
    from mlebench_console.console.nouns.integrity import FINDING, finding_rows

    rows, now = finding_rows(run, known, Path()), time.time()
    return {
        "run": run.id,
        "sweep": run.sweep_id,
        "competition_id": run.competition_id,
        "seed": run.seed,
        "severity": known.severity,
        "results": [
            asdict(result)
            | {"findings": [FINDING.document(row, now) for row in rows if row.result is result]}
            for result in known.results
        ],
        "reviews": [asdict(one) for one in known.reviews],
    }
