"""`runs`: list, follow, retry, stop and classify runs, and the causes of failures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.actions import need as need_actions
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions.action import Action
from mlebench_console.console.cli.common import Context, Following, Lines, TextCommand, new_group
from mlebench_console.console.cli.output import (
    drawing,
    say,
    say_json,
    say_logs,
    say_on_stderr,
    say_rows,
    say_texts,
)
from mlebench_console.console.views.names import find_cause, find_run
from mlebench_console.engine.needs.causes import read_causes
from mlebench_console.engine.settings import read_filters, save_filter
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import acknowledgements, events, runs, submissions, sweeps
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Run, Sweep, SweepSpec
from mlebench_console.state.usage import model_calls, network_use

if TYPE_CHECKING:
    from mlebench_console.console.logs.following import RunLog
    from mlebench_console.console.logs.reader import LogFile
    from mlebench_console.console.views.code import Version, VersionCode, VersionDifference
    from mlebench_console.engine.scoreboard.audit import RunAudit
    from mlebench_console.environment.runner.code_snapshots import KeptFile

# The fields of runs in a list of one sweep's, and of any.
_OF_RUNS = "competition seed state score took idle attempts why notes"
IN_SWEEP, IN_ALL = f"run {_OF_RUNS}", f"run sweep {_OF_RUNS}"
app = new_group()

RunNames = Annotated[list[str], Argument(metavar="RUN...", help="Numbers, or SWEEP/COMPETITION/SEED.")]
CauseName = Annotated[
    str, Argument(metavar="CAUSE", help="Its key, or the beginning of it; 'runs causes' lists them.")
]
RunName = Annotated[str, Argument(metavar="RUN", help="Its number, or SWEEP/COMPETITION/SEED.")]
ListedRuns = Annotated[str, Argument(metavar="RUN,...", help="Numbers, or SWEEP/COMPETITION/SEED.")]
NoteText = Annotated[str, Argument(metavar="TEXT", help="The note.")]
RemoveNote = Annotated[bool, Option("--remove", help="Remove the note.")]
Tags = Annotated[list[str] | None, Argument(metavar="TAG...", help="Letters, digits, . _ + -")]
RemoveTags = Annotated[bool, Option("--remove", help="Remove these tags, or all if none is named.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Re-roll agents' own failures without asking.")]


@app.command("list")
def list_(
    context: Context,
    sweep: Annotated[str, Option(metavar="SWEEP", help="Only runs of this sweep.")] = "",
    state: Annotated[RunState | None, Option(help="Only runs in this state.")] = None,
    filter_: Annotated[
        str,
        Option(
            "--filter",
            metavar="FILTER",
            help="A filter as typed after '/', such as 'class:infra tag:night', or the name of a saved filter.",
        ),
    ] = "",
) -> None:
    """List the runs, of one sweep or all."""
    from mlebench_console.console.nouns.run import RUN, run_rows

    saved = read_filters(context.places.config_file)
    wanted = RUN.checked_filter(saved.get(filter_.strip(), filter_))
    with context.reading_state() as database:
        found = (
            runs.of_sweep(database, sweeps.get(database, sweep).id) if sweep else runs.of_all_sweeps(database)
        )
        elsewhere = runs.placed_elsewhere(database)
        limits = {one.id: one.spec.conditions.time_limit_seconds for one in sweeps.all_sweeps(database)}
    how = drawing()
    chosen = [
        row
        for row in run_rows(found, limits, elsewhere)
        if (state is None or row.run.state is state) and wanted.accepts(row, how)
    ]
    context.say_list(RUN, chosen, IN_SWEEP if sweep else IN_ALL, nothing="no runs")


@app.command()
def filters(
    context: Context,
    name: Annotated[str, Argument(metavar="NAME", help="A saved filter.")] = "",
    words: Annotated[
        list[str] | None, Argument(metavar="WORD...", help="Its words, such as class:infra.")
    ] = None,
    remove: Annotated[bool, Option(help="Remove the filter of this name.")] = False,
) -> None:
    """List saved filters of runs, save one, or remove one; they are stored in config.toml, as [filters]."""
    from mlebench_console.console.nouns.run import RUN

    config_file = context.places.config_file
    known = read_filters(config_file)
    if name and (remove or (not words and name not in known)) and name not in known:
        raise UsageProblem(
            f"there is no saved filter '{name}'", "", f"Saved are: {', '.join(known) or 'none'}."
        )
    if remove and not name:
        raise UsageProblem("--remove needs the name of a saved filter")
    if remove:
        save_filter(config_file, name, None)
    elif words:
        save_filter(config_file, name, RUN.checked_filter(" ".join(words)).text)
    found = read_filters(config_file)
    shown = {one: text for one, text in found.items() if not name or one == name}
    if context.json:
        say_json(shown)
    elif shown:
        say_texts(("filter", "shows"), shown.items())
    else:
        say("no saved filters" if not name else f"removed the filter '{name}'")


@app.command()
def show(context: Context, run: RunName) -> None:
    """Show one run: its attempts, its submissions, what happened."""
    from mlebench_console.console.nouns.competition import competition
    from mlebench_console.console.nouns.event import event_text
    from mlebench_console.console.nouns.run import RUN, run_rows
    from mlebench_console.console.nouns.submission import SUBMISSION, submission_rows
    from mlebench_console.console.views.run import read_validations
    from mlebench_console.engine import control
    from mlebench_console.engine.model_costs import spending_of
    from mlebench_console.engine.needs.waits import job_wait, read_queued_run

    with context.reading_state() as database:
        found = find_run(database, run)
        uses, sweep = model_calls.of_run(database, found.id), sweeps.get(database, found.sweep_id)
        traffic = network_use.of_run(database, found.id)
        queued = read_queued_run(database, found, sweep, time.time())
        attempts = runs.attempts(database, found.id)
        handed_in = [one for attempt in attempts for one in submissions.of_attempt(database, attempt.id)]
        happened = events.newest(database, run_id=found.id)[::-1]
    state_dir = context.places.state_dir
    checks = {attempt.id: read_validations(state_dir / attempt.directory) for attempt in attempts}
    spending = spending_of(uses, context.prices)
    engine = control.status(context.places)
    (row,) = run_rows(
        [found], {sweep.id: sweep.conditions.time_limit_seconds}, {found.id: attempts[-1]} if attempts else {}
    )
    if context.json:
        say_json(
            RUN.document(row, time.time())
            | {
                "attempts_made": [
                    asdict(attempt)
                    | {
                        "directory": str(state_dir / attempt.directory),
                        "validations": checks[attempt.id].count,
                        "last_validation_at": checks[attempt.id].last_at,
                    }
                    for attempt in attempts
                ],
                "submissions_made": [asdict(one) for one in handed_in],
                "model_use": [asdict(use) for use in uses],
                "spending": spending.document(),
                "network_use": [asdict(use) for use in traffic],
                "events": [asdict(event) for event in happened],
                "waits_for": [] if queued is None else [asdict(wait) for wait in queued.waits(engine)],
                "starts": None if queued is None or queued.free_at is None else asdict(queued.free_at),
            }
        )
        return
    say_rows(RUN.columns(IN_ALL), [row])
    say_notes(found)
    if queued is not None:
        say(wording.waiting(queued, engine, time.time()))
    if uses:
        from mlebench_console.console.nouns.costs import in_words

        say(in_words(spending))
    for use in traffic:
        sent, received = wording.size(use.sent_bytes), wording.size(use.received_bytes)
        times = plural(use.connections, "connection")
        say(f"{use.host}, counted by bytes only: {times}, {sent} sent, {received} received")
    for attempt in attempts:
        say(f"attempt {attempt.number}: {state_dir / attempt.directory}")
        if where := wording.placed(attempt, job_wait(attempt), time.time()):
            say(f"  {where}")
        asked = checks[attempt.id]
        if asked.last_at is not None:
            times = plural(asked.count, "validation")
            say(f"  {times} by the agent, the last at {wording.date_and_time(asked.last_at)}")
        if attempt.evidence:
            say(f"  evidence: {attempt.evidence.strip()}")
    if handed_in:
        say()
        rows = submission_rows(found, attempts, handed_in, competition(found.competition_id))
        say_rows(SUBMISSION.columns("attempt number which taken size score standing message"), rows)
    say()
    for event in happened:
        say(f"{wording.date_and_time(event.at)}  {event_text(event)}")


@app.command()
def audit(context: Context, run: RunName) -> None:
    """Show everything that led to a run's outcome, with hashes; exit code 1 if files and records differ."""
    from mlebench_console.engine.scoreboard.audit import audit_of

    with context.reading_state() as database:
        found = audit_of(database, find_run(database, run).id)
    differences = found.differences()
    if context.json:
        say_json(found.to_dict())
    else:
        _say_audit(found)
        for one in differences:
            say_on_stderr(f"differs: {one.text}")
    if differences:
        raise typer.Exit(1)


@app.command()
def calls(
    context: Context,
    run: RunName,
    lines: Annotated[int, Option("--lines", "-n", min=0, help="How many of the last calls.")] = 50,
) -> None:
    """Show a run's model calls, as its gateway counted them: tokens, cost, times, errors."""
    from mlebench_console.console.nouns.call import CALL, MODEL_USE, calls_of
    from mlebench_console.console.nouns.costs import cost_in_words

    prices, state_dir = context.prices, context.places.state_dir
    with context.reading_state() as database:
        found = calls_of(database, find_run(database, run).id, state_dir, prices, last=lines)
    if context.json:
        say_json(
            {
                "totals": [asdict(total) for total in found.spending.models],
                **found.spending.document(),
                "calls": [CALL.document(row, time.time()) for row in found.calls],
                "under_way": [asdict(call) for call in found.under_way],
            }
        )
        return
    if found.under_way:
        say(wording.calls_under_way(found.under_way, time.time()))
    if not found.spending.models:
        say("no model calls were counted; runs of a sweep with --gateway have theirs counted")
        return
    say_rows(CALL.columns("came model outcome status in cached out first total problem"), found.calls)
    say()
    say_rows(
        MODEL_USE.columns("provider model calls failed 429 refused estimated in cached out reasoned cost"),
        found.spending.models,
    )
    say(f"in all: {cost_in_words(found.spending)}; ~ marks tokens that are estimated")


@app.command()
def logs(context: Context, run: RunNames, lines: Lines = 50, following: Following = False) -> None:
    """Print the end of a run's log; of several runs, each line behind its run."""
    from mlebench_console.console.logs.following import run_logs
    from mlebench_console.console.logs.reader import LogFile

    with context.reading_state() as database:
        found = [find_run(database, name) for name in run]
        logs = {log.run_id: log for log in run_logs(database, [one.id for one in found])}
        for one in found:
            if one.id not in logs:
                raise DataProblem(f"run {one.id} has no log", f"it is {one.state}")
            if not logs[one.id].path.exists():
                raise DataProblem(f"run {one.id} has no log", f"there is no {logs[one.id].path}")

        def renewed() -> Mapping[str, LogFile]:
            """Return the logs of the runs that were launched again since the last look."""
            latest = {log.run_id: log for log in run_logs(database, list(logs))}
            others = [log for log in latest.values() if log.path != logs[log.run_id].path]
            logs.update(latest)
            if others:
                say_on_stderr("launched again: what follows is of the new attempt")
            return opened(others)

        def opened(chosen: Iterable[RunLog]) -> dict[str, LogFile]:
            return {log.name if len(logs) > 1 else "": LogFile(log.path) for log in chosen}

        say_logs(opened(logs.values()), lines, json=context.json, following=following, renewed=renewed)


@app.command()
def code(
    context: Context,
    run: Annotated[str, Argument(metavar="RUN", help="RUN, or RUN.ATTEMPT of an attempt before the latest.")],
    submission: Annotated[
        str, Option(metavar="N|best|final|now", help="The code at this submission; best if not given.")
    ] = "",
    file: Annotated[str, Option(metavar="PATH", help="Print this file of it.")] = "",
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="Write the files into a new folder.")
    ] = None,
) -> None:
    """Show the agent's code as it was at a submission: its files, one of them, or all in a folder."""
    from mlebench_console.console.views.code import code_of

    found = code_of(_version(context, f"{run}@{submission}" if submission else run))
    chosen = [found.file(file)] if file else list(found.files)
    if output is not None:
        _write_code(found, chosen, output)

    def text_of(each: KeptFile) -> str:
        return found.read(each).decode("utf-8", "replace")

    if context.json:
        say_json(
            version_facts(found.version)
            | {
                "files": [asdict(each) | ({"text": text_of(each)} if file else {}) for each in chosen],
                "left_out": [asdict(each) for each in found.left_out],
                "more_left_out": found.more_left_out,
                "note": found.note,
            }
        )
    elif output is not None:
        say(f"{plural(len(chosen), 'file')} of {found.version.title} in {output}")
    elif file:
        say(text_of(chosen[0]).removesuffix("\n"))
    else:
        _say_code(found)


def _say_code(found: VersionCode) -> None:
    say(found.version.title)
    if found.note:
        say_on_stderr(found.note)
    say_texts(
        ("bytes", "sha256", "file"),
        [(f"{each.bytes:,}", each.sha256[:12], each.path) for each in found.files],
        right=("bytes",),
    )
    for each in found.left_out:
        say(f"left out: {each.path}: {each.why}")
    if found.more_left_out:
        say(f"left out: {found.more_left_out:,} more")


def _write_code(found: VersionCode, chosen: Sequence[KeptFile], folder: Path) -> None:
    """Write files into a new folder, in which no link of an agent can lead elsewhere.

    Raises:
        UsageProblem: the folder exists.
        DataProblem: a file can't be written there.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageProblem(f"{folder} exists already", "", "Name a folder that does not exist.") from error
    for each in chosen:
        place = folder / each.path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as stream:
                stream.write(found.read(each))
        except OSError as error:
            raise DataProblem(f"{each.path} can't be written", error.strerror or "") from error


@app.command()
def diff(
    context: Context,
    left: Annotated[str, Argument(metavar="LEFT", help="RUN, RUN.ATTEMPT, RUN@N, @best, @final, @now.")],
    right: Annotated[str, Argument(metavar="RIGHT", help="The same forms.")],
    stat: Annotated[bool, Option(help="Only how many lines differ in each file.")] = False,
) -> None:
    """Compare code and configuration of two runs, attempts or submissions; code 0 where they are the same, else 1.

    A run without a submission means the one with the best score.
    """
    from mlebench_console.console.views.code import compare, unified

    found = compare(_version(context, left), _version(context, right))
    if context.json:
        facts = {
            "left": version_facts(found.left),
            "right": version_facts(found.right),
            "same": found.is_none,
        }
        documents = [
            asdict(change) | {"hunks": [asdict(hunk) | {"heading": hunk.heading} for hunk in change.hunks]}
            for change in found.files
        ]
        say_json(
            facts
            | {
                "configuration": [asdict(each) for each in found.settings],
                "files": documents,
                "same_files": found.same_files,
                "notes": found.notes,
                "problems": found.problems,
            }
        )
    elif stat:
        _say_changes(found)
    else:
        for line in unified(found):
            say(line)
    if found.problems:
        raise DataProblem("the code can't be compared", "; ".join(found.problems))
    if not found.is_none:
        raise typer.Exit(1)


def _say_changes(found: VersionDifference) -> None:
    for each in found.settings:
        say(f"{each.name}: {each.left or 'none'} -> {each.right or 'none'}")
    say_texts(
        ("added", "removed", "file", "what"),
        [
            (f"+{each.added:,}", f"-{each.removed:,}", each.path, each.note or each.status)
            for each in found.files
        ],
        right=("added", "removed"),
    )
    say(f"{plural(found.same_files, 'file')} the same")


def version_facts(version: Version) -> dict[str, Any]:
    """Return which run, attempt and submission a version is as JSON's object."""
    handed_in = version.submission
    return {
        "name": version.name,
        "run": version.run.id,
        "sweep": version.run.sweep_id,
        "competition": version.run.competition_id,
        "seed": version.run.seed,
        "attempt": version.attempt.number,
        "submission": None if handed_in is None else handed_in.sequence,
        "best": version.best,
        "final": handed_in is not None and handed_in.final,
        "taken_at": None if handed_in is None else handed_in.taken_at,
        "score": None if handed_in is None else handed_in.score,
    }


def _version(context: Context, text: str) -> Version:
    """Find the version that `17`, `17.1`, `17@3` or `sweep/competition/1@best` names."""
    from mlebench_console.console.views.code import Wanted, split_name, version_of

    name, attempt, submission = split_name(text)
    with context.reading_state() as database:
        return version_of(database, Wanted(find_run(database, name).id, attempt, submission))


@app.command()
def causes(
    context: Context,
    sweep: Annotated[str, Option(metavar="SWEEP", help="Only runs of this sweep.")] = "",
    everything: Annotated[bool, Option("--all", help="Also acknowledged ones.")] = False,
) -> None:
    """List the runs that need you, grouped by cause: infrastructure first, agents' own failures last."""
    from mlebench_console.console.nouns.need import CAUSE

    now = time.time()
    with context.reading_state() as database:
        groups = read_causes(database, now, sweeps.get(database, sweep).id if sweep else None)
    shown = [group for group in groups if everything or not group.is_acknowledged(now)]
    fields = "cause runs what sweeps splits since newest relaunch acknowledged"
    context.say_list(CAUSE, shown, fields, nothing="no run needs you")
    if not context.json and len(shown) < len(groups):
        say(f"{len(groups) - len(shown)} acknowledged; --all lists them")


@app.command()
def acknowledge(
    context: Context,
    cause: CauseName,
    reason: Annotated[str, Option(metavar="TEXT", help="Why; consoles show it.")] = "",
    snooze: Annotated[
        str,
        Option(
            metavar="DURATION", help="For this long, such as 8h; otherwise until a new run has this cause."
        ),
    ] = "",
    undo: Annotated[bool, Option(help="Show it again.")] = False,
) -> None:
    """Acknowledge a group of runs with one cause, with a reason; it is no longer shown as needing you."""
    from mlebench_console.engine.options.sweep import read_duration

    if undo and (reason or snooze):
        raise UsageProblem("--undo takes neither --reason nor --snooze")
    with context.reading_state() as database:
        known = acknowledgements.all_acknowledgements(database)
        # The runs of what is taken back may have been launched again.
        if undo and cause in known:
            key, text = cause, ""
        else:
            group = find_cause(database, cause, time.time())
            key, text = group.key, group.text
    seconds = read_duration(snooze) if snooze else None
    action = (
        need_actions.take_back(key)
        if undo
        else need_actions.acknowledge(key, reason, seconds=seconds, text=text)
    )
    context.perform(action, cause=key)


@app.command()
def retry(
    context: Context,
    run: Annotated[
        list[str] | None, Argument(metavar="[RUN...]", help="Numbers, or SWEEP/COMPETITION/SEED.")
    ] = None,
    cause: Annotated[
        str, Option(metavar="CAUSE", help="All runs with this cause; 'runs causes' lists them.")
    ] = "",
    yes: Yes = False,
) -> None:
    """Queue ended runs again; ask before re-rolling a seed whose agent itself failed."""
    if bool(run) == bool(cause):
        raise UsageProblem("give either runs or a --cause")
    if cause:
        with context.reading_state() as database:
            chosen = list(find_cause(database, cause, time.time()).runs)
    else:
        chosen = _found(context, run or [])
    relaunch = run_actions.relaunch(chosen, all_or_none=context.must_apply_to_all)
    context.perform(relaunch, yes=yes, starting=True)


@app.command()
def stop(context: Context, run: RunNames) -> None:
    """Stop runs: live ones are ended, queued ones never start."""
    stopped = run_actions.stop(_found(context, run), all_or_none=context.must_apply_to_all)
    context.perform(stopped)


@app.command()
def regrade(context: Context, run: RunNames) -> None:
    """Grade runs whose grading has failed again at once; no agent runs again."""
    graded = run_actions.regrade(_found(context, run), all_or_none=context.must_apply_to_all)
    context.perform(graded)


@app.command()
def classify(
    context: Context,
    run: RunNames,
    failure_class: Annotated[FailureClass, Option("--class", help="The correct class.")],
    note: Annotated[str, Option(help="Why; kept with the attempt.")] = "",
) -> None:
    """Correct the failure class of failed runs by hand."""
    context.perform(run_actions.classify(_found(context, run), failure_class, note))


@app.command()
def note(context: Context, run: ListedRuns, text: NoteText = "", remove: RemoveNote = False) -> None:
    """Write a note on runs, in place of an earlier one; without a text, show it."""
    found = _found(context, run.split(","))
    annotate(context, found, partial(run_actions.annotate, found), changed_note(text, remove=remove))


@app.command()
def tag(context: Context, run: ListedRuns, tags: Tags = None, remove: RemoveTags = False) -> None:
    """Put tags on runs, for filters; without a tag, show them."""
    found = _found(context, run.split(","))
    annotate(context, found, partial(run_actions.annotate, found), changed_tags(found, tags, remove=remove))


@app.command(cls=TextCommand)
def shell(
    context: Context,
    run: Annotated[
        str, Argument(metavar="RUN", help="Take the competition, agent and network of this run.")
    ] = "",
    competition: Annotated[
        str, Option("--competition", "-c", metavar="ID", help="Without a run: on this competition.")
    ] = "",
    agent: Annotated[str, Option(metavar="ID", help="Without a run: in this agent's image.")] = "dummy",
    agents_dir: Annotated[
        Path | None, Option(metavar="DIR", help="An agents folder in MLE-bench's format.")
    ] = None,
    network: Annotated[
        Literal["none", "models", "open"],
        Option(help="Without a run: what it may reach, as for 'sweep launch'."),
    ] = "none",
    allow: Annotated[
        list[str] | None, Option(metavar="HOST[:PORT]", help="A host of the network 'models'; repeatable.")
    ] = None,
) -> None:
    """Open a shell in a container as an agent finds it; nothing in it is kept, and secrets are not set."""
    from mlebench_console.engine.agent_snapshots import agent_of
    from mlebench_console.engine.runs.shell import open_shell, variables

    if bool(run) == bool(competition):
        raise UsageProblem("give either a run or a --competition")
    if run:
        with context.reading_state() as database:
            found = find_run(database, run)
            spec = sweeps.get(database, found.sweep_id).spec
        chosen = registry.get(found.competition_id)
    else:
        chosen = registry.get(competition)
        spec = SweepSpec(
            agent_id=agent,
            agents_dir=str(agents_dir or ""),
            competitions=(chosen.id,),
            seeds=1,
            conditions=RunConditions(0.0, network=network, allowed_hosts=tuple(allow or ())),
            data_dir=str(context.data_dir(None)),
        )
    used = agent_of(spec)
    state_dir = context.places.state_dir
    with open_shell(state_dir, chosen, spec, used, terminal=sys.stdin.isatty()) as command:
        say_on_stderr(
            f"{used.image_name} on {chosen.id}, network {spec.conditions.network}; nothing is kept when the shell ends"
        )
        code = subprocess.run(command, env=variables(os.environ), check=False).returncode
    raise typer.Exit(code)


def _say_audit(found: RunAudit) -> None:
    """Print an audit trail, hashes in full."""
    from mlebench_console.console.nouns.event import event_text
    from mlebench_console.console.nouns.run import RUN, run_rows

    dataset, spec = found.dataset, found.sweep.spec
    rows = run_rows([found.run], {found.sweep.id: spec.conditions.time_limit_seconds})
    say_rows(RUN.columns(IN_ALL), rows)
    say()
    say(f"agent    {spec.agent_id}, version {found.sweep.agent_version}")
    say(f"dataset  edition {spec.conditions.edition}, descriptions {dataset.descriptions}")
    hashes = [(dataset.answers_sha256, "answers"), (dataset.sample_submission_sha256, "sample submission")]
    for one in found.attempts:
        attempt = one.attempt
        say(f"attempt {attempt.number}{' (re-roll)' if attempt.reroll else ''}: {attempt.directory}")
        built = f", built from {attempt.recipe}" if attempt.recipe else ""
        say(f"  runtime {attempt.runtime}, image {attempt.image or 'none'}{built}")
        what = attempt.outcome or attempt.failure_class or wording.UNKNOWN
        suspected = f", suspected: {attempt.suspected.words}" if attempt.suspected else ""
        say(
            f"  ended: {attempt.exit_reason or wording.UNKNOWN}, {what}{suspected} {attempt.failure_text}".rstrip()
        )
        hashes += [(digest, f"attempt {attempt.number}: {name}") for name, digest in one.files.items()]
        for each in one.submissions:
            graded = each.submission
            name = (
                f"attempt {attempt.number}: submission {graded.sequence}{' (final)' if graded.final else ''}"
            )
            hashes.append((each.file_sha256, f"{name}, {wording.outcome(graded.standing)}"))
            hashes.append((each.code_sha256, f"{name}: list of its code's files"))
    say()
    say_texts(("sha256", "of"), [(digest or "not here", name) for digest, name in hashes])
    say()
    for event in found.events:
        say(f"{wording.date_and_time(event.at)}  {event_text(event)}")


def changed_note(text: str, *, remove: bool) -> dict[str, Any]:
    """Return what a command changes of a note; nothing where it is to be shown.

    Raises:
        UsageProblem: it is to be written and removed at once.
    """
    if text and remove:
        raise UsageProblem("give either a text or --remove")
    return {"note": text} if text or remove else {}


def changed_tags(
    subjects: Sequence[Run | Sweep], tags: Sequence[str] | None, *, remove: bool
) -> dict[str, Any]:
    """Return which tags a command adds or removes; none where they are to be shown."""
    if remove:
        return {"remove": tags or sorted({known.name for one in subjects for known in one.tags})}
    return {"add": tags} if tags else {}


def annotate(
    context: Context,
    subjects: Sequence[Run | Sweep],
    action: Callable[..., Action],
    change: Mapping[str, Any],
) -> None:
    """Change the notes or tags of runs or a sweep by an action; where nothing is to be changed, print them."""
    if change:
        context.perform(action(**change))
    elif context.json:
        facts = [asdict(subject) for subject in subjects]
        names = ("id", "note", "noted_by", "noted_at", "tags")
        found = [{name: one[name] for name in names} for one in facts]
        say_json(found[0] if len(found) == 1 else found)
    else:
        for subject in subjects:
            if len(subjects) > 1:
                say(f"run {subject.id}")
            say_notes(subject)
            if not (subject.tags or subject.note):
                say("no note and no tags")


def say_notes(subject: Run | Sweep) -> None:
    """Print the note and the tags of a run or a sweep with their authors."""
    for one in subject.tags:
        say(f"tag   {one.name}, by {one.by}, {wording.date_and_time(one.at)}")
    if subject.note:
        by = f", by {subject.noted_by}, {wording.date_and_time(subject.noted_at)}"
        say(f"note  {subject.note}{'' if subject.noted_at is None else by}")


def _found(context: Context, names: list[str]) -> list[Run]:
    with context.reading_state() as database:
        return [find_run(database, name) for name in names]
