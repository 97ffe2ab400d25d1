"""Write docs/commands.md and docs/keys.md from the program itself; a test sees that they are up to date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from console.cli.program import PROGRAM, root_command
from console.tui.keys import TABLE
from engine.control import Answer, EngineStatus
from engine.grading.report import Report
from engine.rungroups import SubmissionLine
from engine.scoreboard import Comparison, Difference, Duel, Row, Side
from engine.scoreboard.insight import Detectable, Effort, EndingsOfSplit, Flag, PassAtK, Stability, TimePoint
from engine.scoreboard.model import Standing
from state.records import Attempt, Event, Run, Submission, Sweep, SweepCounts, SweepSpec

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 100
MADE = "<!-- Made by 'make docs'; edit the program, not this file. -->\n"

# What `--json` prints, as the records that its objects are made of.
DOCUMENTS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    ("engine status", "one object", (EngineStatus,)),
    (
        "status",
        "one object with `state_dir`, `data_dir`, `engine` (as `engine status`), `sweeps` (as `sweep list`)",
        (),
    ),
    (
        "sweep list",
        "a list of sweeps, each with `counts`; `spec` is what was asked for",
        (Sweep, SweepSpec, SweepCounts),
    ),
    ("sweep show", "one sweep as in `sweep list`, with `runs` as in `runs list`", ()),
    ("runs list", "a list of runs, each with `idle_seconds`", (Run,)),
    (
        "runs show",
        "one run with `attempts_made` (each with `validations` and `last_validation_at`), `submissions_made` "
        "and `events`",
        (Attempt, Submission, Event),
    ),
    (
        "sweep launch, import, pause, resume, stop, retry, rm, concurrency, priority; runs retry, stop, classify",
        "the engine's answer, one object",
        (Answer,),
    ),
    ("prepare", "a list with `competition_id`, `edition`, `state`, `problem`, `folder`", ()),
    ("datasets list", "a list with `competition_id`, `edition`, `state`, `problem`, `raw`, `folder`", ()),
    (
        "competitions list, show",
        "a list, or one object, with `id`, `name`, `split`, `category`, `available`, `metric`, `direction`, `gold`,"
        " `silver`, `bronze`, `median`, `teams`, `size_gb`, `rules_url`, `excluded_from_corrected`, `defects`",
        (),
    ),
    (
        "competitions defects",
        "a list with `competition_id`, `id`, `severity`, `treatment`, `text`, `remedy`, `known`",
        (),
    ),
    ("doctor", "a list with `name`, `health` (`ok`, `warn`, `fail`), `found`, `next_step`", ()),
    ("validate", "one object with `competition_id`, `valid`, `message`", ()),
    (
        "grade",
        "MLE-bench's report of many submissions, its `competition_reports` as `grade-sample`, and `report_path`",
        (),
    ),
    ("grade-sample", "MLE-bench's report of one submission with further keys at its end", (Report,)),
    (
        "scoreboard",
        "a list of rows; `columns` holds by name, and `own` for the row's own competitions, how it stands",
        (Row, Standing),
    ),
    (
        "aggregate",
        "one object with `name`, `edition`, `padded`, and `lines` with `name`, `runs_of` and `measures`; a measure"
        " has `mean`, `sem`, `seeds`, `interval_95`",
        (),
    ),
    ("compare", "one object; p-values are exact", (Comparison, Difference, Duel, Side)),
    (
        "insight",
        "one object with `name`, `pass_at_k`, `shorter_limits`, `endings`, `stability`, `effort`, `flags`",
        (PassAtK, TimePoint, EndingsOfSplit, Stability, Detectable, Effort, Flag),
    ),
    ("make-submission", "the lines of the list", (SubmissionLine,)),
)


def commands_text() -> str:
    """Every command's help, and the keys of what `--json` prints."""
    parts = ["# Commands\n", MADE]
    for path, command in _walk((), root_command()):
        name = " ".join((PROGRAM, *path))
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=WIDTH)
        parts.append(f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    parts.append("## JSON documents\n")
    parts.append(
        "With `--json` a command prints one document, in ASCII. Moments are seconds since the epoch (UTC), sizes are\n"
        "bytes, what is not known is `null`. Keys are added in later versions and never change their meaning.\n"
    )
    for name, shape, records in DOCUMENTS:
        parts.append(f"### {name}\n\n{shape[0].upper()}{shape[1:]}.\n")
        parts += [f"- {record.__name__}: {_keys(record)}" for record in records]
        if records:
            parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def keys_text() -> str:
    """Every key of the console, by context."""
    parts = [
        "# Keys\n",
        MADE,
        "The same table is behind `?` in the console. The names in the last column rebind a key in config.toml:\n",
        '```toml\n[keys]\n"sweep.relaunch" = "R"\n```\n',
        "With a mouse: a click chooses a line or a cell and a second one opens it; a click on a column's name sorts\n"
        "by it and a second one turns the order round, on the sweep screen and on the scoreboard.\n",
    ]
    for context in dict.fromkeys(key.context for key in TABLE):
        parts += [f"## {context}\n", "| Keys | What they do | Name |", "| --- | --- | --- |"]
        parts += [
            f"| {' '.join(f'`{name}`' for name in key.keys)} | {key.help} | `{key.id}` |"
            for key in TABLE
            if key.context == context
        ]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in subcommands(command).items():
        if not inner.hidden:
            yield from _walk((*path, name), inner)


def subcommands(command: Any) -> dict[str, Any]:
    """Return the commands of a group by name; a single command has none."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    return {name: command.get_command(None, name) for name in names}


def _keys(record: type) -> str:
    return ", ".join(f"`{field.name}`" for field in fields(record))


def main() -> None:
    """Write both documents."""
    (DOCS / "commands.md").write_text(commands_text(), encoding="utf-8")
    (DOCS / "keys.md").write_text(keys_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
