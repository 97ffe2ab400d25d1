"""Write the documents that are generated from the program; a test checks that they are up to date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from mlebench_console.competitions.model import Competition
from mlebench_console.competitions.reading import DERIVED
from mlebench_console.console.cli.program import PROGRAM, root_command
from mlebench_console.console.tui.keys import TABLE
from mlebench_console.console.views.code import DiffLine, FileChange, Hunk, SettingChange
from mlebench_console.engine.agreement import Agreement, AgreementReport, Graded, SumOf
from mlebench_console.engine.control import Answer, EngineStatus
from mlebench_console.engine.grading.report import Report
from mlebench_console.engine.model_costs import ModelTotal
from mlebench_console.engine.rungroups import SubmissionLine
from mlebench_console.engine.scoreboard.comparison import Comparison, Difference, Duel, Side
from mlebench_console.engine.scoreboard.insight import (
    Detectable,
    Effort,
    EndingsOfSplit,
    Flag,
    PassAtK,
    Stability,
    TimePoint,
)
from mlebench_console.engine.scoreboard.model import Interim, Row, Standing
from mlebench_console.engine.scoreboard.timeline import Bar, ExpectedEnd, Lane, Mark, Timeline
from mlebench_console.environment.gateway.records import ModelCall
from mlebench_console.environment.runner.code_snapshots import KeptFile, LeftOut
from mlebench_console.foundation.fields import fields_of, flat_fields, in_words
from mlebench_console.state.event_records import DATA, Event
from mlebench_console.state.records import Attempt, Run, Submission, Sweep, SweepCounts, SweepSpec
from mlebench_console.state.usage.model_calls import ModelUse
from mlebench_console.state.usage.network_use import NetworkUse

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 100
MADE = "<!-- Made by 'make docs'; edit the program, not this file. -->\n"

# The records from which `--json` output is made.
DOCUMENTS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    ("engine status", "one object", (EngineStatus,)),
    (
        "status",
        "one object with `state_dir`, `data_dir`, `engine` (as `engine status`), `sweeps` (as `sweep list`),"
        " `ungradable`, `kaggle` (since when it can't be reached) and `datasets` (what is being prepared, or null)",
        (),
    ),
    (
        "sweep list",
        "a list of sweeps, newest first, each with `counts`, `demo` (whether runs are on demo data), `any_medal` (null"
        " before a seed is whole), `interim` and `ends` (null where that is not known); `spec` is what was asked for",
        (Sweep, SweepSpec, SweepCounts, Interim, ExpectedEnd),
    ),
    (
        "sweep timeline",
        "one object: `lanes` of attempts that were never there at once, `marks` of what happened to all, `medals` as"
        " pairs of moment and medal, `interim` and `ends` as in `sweep list`",
        (Timeline, Lane, Bar, Mark),
    ),
    (
        "sweep show",
        "one sweep as in `sweep list`, with `runs` as in `runs list`, and of its model calls `model_use` and `spending`"
        " as in `runs show`",
        (),
    ),
    ("runs list", "a list of runs, each with `idle_seconds`", (Run,)),
    (
        "runs show",
        "one run with `attempts_made` (each with `validations` and `last_validation_at`), `submissions_made`, "
        "`events` (as in `events`), `model_use`, `network_use` (bytes by allowed host, as the proxy has counted them),"
        " and `spending`: its model calls' `calls`, `errors`, `limited`, `refused`, `estimated`,"
        " tokens, `cost` (null where a price is not known), `least_cost` (of what has a price), `currency`,"
        " `models_without_price`",
        (Attempt, Submission, ModelUse, NetworkUse),
    ),
    (
        "events",
        "a list of events, oldest first, each with `seed` and `severity`; `kind` is a code, `times` counts repetitions,"
        " `detail` is null or, by the kind, one of the others",
        (Event, *dict.fromkeys(DATA.values())),
    ),
    (
        "runs calls",
        "`spending` as in `runs show`, with `totals` by model (each with its tokens as `usage` too), and `calls`",
        (ModelTotal, ModelCall),
    ),
    (
        "prices check",
        "one object with `checked`, `models`, and `without_price`: `provider`, `model`, `calls`, `input_tokens`,"
        " `output_tokens`",
        (),
    ),
    (
        "sweep launch, import, pause, resume, stop, retry, rm, concurrency, priority; runs retry, stop, classify",
        "the engine's answer, one object",
        (Answer,),
    ),
    ("prepare", "a list with `competition_id`, `edition`, `state`, `problem`, `folder`", ()),
    (
        "datasets list",
        "a list with `competition_id`, `edition`, `state`, `problem`, `demo`, `raw`, `folder`",
        (),
    ),
    (
        "competitions list, show",
        "a list, or one object, with `id`, `source`, `name`, `split`, `category`, `available`, `metric`, `direction`,"
        " `gold`, `silver`, `bronze`, `median`, `teams`, `size_gb`, `rules_url`, `excluded_from_corrected`, `defects`",
        (),
    ),
    ("competitions new", "one object with `competition_id`, `folder`, `is_found`", ()),
    ("competitions check", "a list with `what`, `health` (`ok`, `warn`, `fail`), `found`, `detail`", ()),
    ("competitions vectors", "one object with `competition_id`, `folder`", ()),
    (
        "competitions defects",
        "a list with `competition_id`, `id`, `severity`, `treatment`, `text`, `remedy`, `known`",
        (),
    ),
    (
        "datasets doctor",
        "one report, its `competitions` with `sums`, `sample` and `perfect`",
        (AgreementReport, Agreement, SumOf, Graded),
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
        "a list of rows; `columns` holds by name, and `own` for the row's own competitions, how it stands; `costs` of"
        " its model calls (null where nothing is known) has `runs`, `measured`, `estimated`, `by_bytes`, `sent_bytes`,"
        " `received_bytes`, `priced`,"
        " `spending`, `total`, `tokens_per_run`, `cost_per_run`, `cost_per_medal`, `medals_per_100_dollars`, `aside`,"
        " `price_date`, `own_prices`",
        (Row, Standing),
    ),
    (
        "aggregate",
        "one object with `name`, `edition`, `padded`, and `lines` with `name`, `runs_of` and `measures`; a measure"
        " has `mean`, `sem`, `seeds`, `interval_95` (1.96 standard errors, as MLE-bench has it: it may leave 0 to 100)"
        " and `wilson_95` (Wilson's score, within 0 to 100; null where the number of runs is not known)",
        (),
    ),
    ("compare", "one object; p-values are exact", (Comparison, Difference, Duel, Side)),
    (
        "insight",
        "one object with `name`, `pass_at_k`, `shorter_limits`, `endings`, `stability`, `effort`, `flags`,"
        " `model_costs` as the `costs` of a row, and `model_costs_by_competition`",
        (PassAtK, TimePoint, EndingsOfSplit, Stability, Detectable, Effort, Flag),
    ),
    ("export row", "one object with the row's facts, `columns`, `costs` and its `disclosure`", ()),
    ("export bundle, runs", "one object with `folder`, and `manifest`, or `runs` and `groups`", ()),
    ("export plots; report", "one object with `files`", ()),
    ("import reports", "one object with `name`, `results`, `competitions`, `files`, `conflict`", ()),
    ("import published, remove", "one object with `rows` and `newest`, or with `name`", ()),
    (
        "runs code",
        "one object with `name`, `run`, `sweep`, `competition`, `seed`, `attempt`, `submission` (null: as it is now),"
        " `best`, `final`, `taken_at`, `score`, `files`, `left_out`, `more_left_out`, `note`;"
        " with `--file` its `text` too",
        (KeptFile, LeftOut),
    ),
    (
        "runs diff",
        "one object with `left` and `right` as in `runs code`, `same`, `configuration`, `files`, `same_files`, `notes`,"
        " `problems`; a hunk has its `heading` too",
        (SettingChange, FileChange, Hunk, DiffLine),
    ),
    ("runs logs; engine logs", "a list of lines with `text`, and `run` where there are several logs", ()),
    ("make-submission", "the lines of the list", (SubmissionLine,)),
)


def commands_text() -> str:
    """Return every command's help, and the keys of its `--json` output."""
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
    """Return every key of the console, by context."""
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


def competition_toml_text() -> str:
    """Return every key of a competition.toml, by table, from the records that it is read into."""
    parts = [
        "# competition.toml\n",
        MADE,
        "The facts of a competition. A key that is not listed here, a value of another type, cut-offs in the\n"
        "wrong order, a file outside of `public/` and `private/`: each is refused with file and key when the facts\n"
        "are read.\n",
        *_record_lines(Competition, ""),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _record_lines(record: type, table: str) -> Iterator[str]:
    meanings, inner = _meanings(record), []
    hints, required = fields_of(record)
    needed = {name: "" if name in required else ", optional" for name in hints}
    yield f"{_summary(record)}\n"
    yield from ("| Key | Value | Meaning |", "| --- | --- | --- |")
    for name, hint in hints.items():
        if f"{table}{name}" in DERIVED:
            continue
        is_list = get_origin(hint) is tuple
        element = get_args(hint)[0] if is_list else hint
        if isinstance(element, type) and is_dataclass(element):
            inner.append((f"[[{name}]]" if is_list else f"[{name}]", name, element))
        else:
            yield f"| `{name}` | {in_words(hint)}{needed[name]} | {meanings[name]} |"
    yield ""
    for header, name, element in inner:
        yield f"## {header}{needed[name]}\n"
        yield from _record_lines(element, f"{table}{name}.")


def _summary(record: type) -> str:
    return inspect.cleandoc(record.__doc__ or "").partition("\n")[0]


def _meanings(record: type) -> dict[str, str]:
    """Return the descriptions of a record's attributes in its docstring, by name."""
    text = inspect.cleandoc(record.__doc__ or "").partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.+(?:\n     .+)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in found}


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
    # What was asked for is written with the conditions of its runs, by flat names.
    names = flat_fields(record) if record is SweepSpec else [field.name for field in fields(record)]
    return ", ".join(f"`{name}`" for name in names)


def verification_text() -> str:
    """Return the results of machines with Kaggle's data, from their reports below docs/verification/."""
    head = """\
Tests compare with what MLE-bench's own code makes of synthetic data. Kaggle's data may not be passed on, so that only
those who have an account can compare with the real ones:

```sh
mlebench-console datasets doctor --real spaceship-titanic --output report.json
```

It takes ids or names of splits, prepares what is not prepared, compares Kaggle's zip and the prepared tables with the
checksums that MLE-bench publishes, and grades the sample submission and a perfect one, which must earn gold. The report
holds checksums, scores and versions: no data, no names, no paths. Without `--real` nothing is downloaded.

To add one: put it into `docs/verification/` under a name of its own, such as `2026-05-alice.json`, run `make docs`, and
open a pull request with both. What differs is as welcome as what agrees.
"""
    lines = [
        "# Verification with real data\n",
        MADE,
        head,
        "## Reports\n",
        "| Competition | Report | Checksums as published | Sample submission | Perfect submission | Agrees |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for path in sorted((DOCS / "verification").glob("*.json")):
        report = msgspec.json.decode(path.read_bytes(), type=AgreementReport)
        lines += [_agreement_line(path, one) for one in report.competitions]
    return "\n".join(lines) + "\n"


def _agreement_line(path: Path, one: Agreement) -> str:
    scores = [
        "" if each is None or each.score is None else f"{each.score:g} {each.medal or ''}".strip()
        for each in (one.sample, one.perfect)
    ]
    sums = f"{one.compared - len(one.differing)} of {one.compared}"
    cells = [
        one.competition_id,
        f"[{path.stem}](verification/{path.name})",
        sums,
        *scores,
        "yes" if one.agrees else "no",
    ]
    return f"| {' | '.join(cells)} |"


WRITERS = {
    "commands.md": commands_text,
    "keys.md": keys_text,
    "competition-toml.md": competition_toml_text,
    "verification.md": verification_text,
}
"""The function that generates each document below docs/."""


def main() -> None:
    """Write the documents."""
    for name, text in WRITERS.items():
        (DOCS / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
