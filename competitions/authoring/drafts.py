"""Template for a new competition's folder: facts, task and description, to be completed by its author."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlebench_console.foundation.problems import UsageProblem

TODO = "TODO"
"""Marks what the author still has to write."""

MetricName = Literal["accuracy", "auc", "rmse", "mae"]
# The scores that earn gold, silver and bronze, and the median.
CutOffs = tuple[float, float, float, float]


@dataclass(frozen=True)
class Draft:
    """What the author states about a new competition.

    Attributes:
        id: its name, letters, digits and dashes.
        name: its title.
        table: the labelled table among the raw files.
        id_column: names the rows of that table.
        target: the column to predict.
        group: the column whose groups are kept whole in train or test; empty to split by row.
        images: the raw folder with one image for each row, named as the ids are; empty if there are none.
        metric: how submissions are scored.
        cut_offs: the cut-offs of medals; None where they are not known yet.
    """

    id: str
    name: str
    table: str = "train.csv"
    id_column: str = "id"
    target: str = "target"
    group: str = ""
    images: str = ""
    metric: MetricName = "accuracy"
    cut_offs: CutOffs | None = None


@dataclass(frozen=True)
class _Scoring:
    """The texts of one metric for facts, task and description."""

    title: str
    direction: str
    formula: str
    values: str
    example: tuple[str, str]
    sample: str
    grade: str
    guessed: CutOffs


_NUMBERS = """\
    rows = checks.paired_rows(case, ID, TARGET)
    predicted = checks.numbers(case.submission, TARGET)[rows]
    return metrics.{metric}(checks.numbers(case.answers, TARGET), predicted)"""

_SCORINGS: Mapping[MetricName, _Scoring] = {
    "accuracy": _Scoring(
        title="accuracy",
        direction="higher",
        formula="number of rows with the right label / number of rows",
        values="one of the labels in `train.csv`",
        example=("oak", "beech"),
        sample="train[TARGET].min()",
        grade="    return graders.name_accuracy(case, id_column=ID, target=TARGET)",
        guessed=(0.95, 0.9, 0.85, 0.7),
    ),
    "auc": _Scoring(
        title="area under the ROC curve",
        direction="higher",
        formula="share of pairs of a positive and a negative row in which the positive one has the higher value;"
        " a tie counts half",
        values="a number from 0 to 1",
        example=("0.73", "0.08"),
        sample="0.5",
        grade="    return graders.auc(case, id_column=ID, target=TARGET)",
        guessed=(0.95, 0.9, 0.85, 0.7),
    ),
    "rmse": _Scoring(
        title="root mean squared error",
        direction="lower",
        formula="sqrt(mean over rows of (predicted - true)^2)",
        values="a finite number",
        example=("1.25", "-0.5"),
        sample="0.0",
        grade=_NUMBERS.format(metric="rmse"),
        guessed=(0.1, 0.2, 0.3, 1.0),
    ),
    "mae": _Scoring(
        title="mean absolute error",
        direction="lower",
        formula="mean over rows of |predicted - true|",
        values="a finite number",
        example=("1.25", "-0.5"),
        sample="0.0",
        grade=_NUMBERS.format(metric="mean_absolute_error"),
        guessed=(0.1, 0.2, 0.3, 1.0),
    ),
}


def write_draft(draft: Draft, home: Path) -> Path:
    """Write the folder of a new competition below `home` and return it.

    Raises:
        UsageProblem: the id is not valid, or the folder exists or cannot be made.
    """
    if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", draft.id):
        raise UsageProblem(
            f"'{draft.id}' is not an id", "it must be made of letters, digits and single dashes"
        )
    folder = home / draft.id
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageProblem(f"{folder} exists already", "", "Choose another id, or remove it.") from error
    except OSError as error:
        raise UsageProblem(f"{folder} can't be made", error.strerror or str(error)) from error
    for name, text in (
        ("competition.toml", _facts(draft)),
        ("task.py", _task(draft)),
        ("description.md", _description(draft)),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _facts(draft: Draft) -> str:
    scoring = _SCORINGS[draft.metric]
    gold, silver, bronze, median = draft.cut_offs or scoring.guessed
    mark = "" if draft.cut_offs else f"   # {TODO}: guessed; they must suit the data"
    return f'''\
id = "{draft.id}"
name = {_text(draft.name)}
category = "{"Image Classification" if draft.images else "Tabular"}"
complexity = "dev"
kaggle_type = "simple"
awards_medals = false
grader_name = "{draft.metric}"

[metric]
name = "{scoring.title}"
direction = "{scoring.direction}"
formula = "{scoring.formula}"

[thresholds]{mark}
gold = {gold}
silver = {silver}
bronze = {bronze}
median = {median}
confidence = "low"

[files]
answers = "private/test.csv"
sample_submission = "public/sample_submission.csv"

[parameters]
test_size = 0.2
seed = 0
'''


def _task(draft: Draft) -> str:
    scoring = _SCORINGS[draft.metric]
    kit = ["checks", "metrics"] if "checks." in scoring.grade else []
    kit += ["placing"] if draft.images else []
    needed = "ID, TARGET, GROUP" if draft.group else "ID, TARGET"
    divided = "job, table, table[GROUP]" if draft.group else "job, table"
    imports = [f"from mlebench_console.competitions.kit import {', '.join(kit)}"] if kit else []
    imports += ["from mlebench_console.competitions.kit.tables import labelled_table"]
    imports += (
        ["from mlebench_console.competitions.kit.tasks import graders"] if "graders." in scoring.grade else []
    )
    imports += ["from mlebench_console.competitions.task import Grading, Preparation"]
    constants = {"ID": draft.id_column, "TARGET": draft.target, "GROUP": draft.group, "IMAGES": draft.images}
    what = "whole groups" if draft.group else "rows"
    title = draft.name.replace("\\", "/").replace('"', "'")  # as a docstring can hold it
    if draft.images:
        parts = """\
    labelled_table.write_labels(job, train, test[[ID, TARGET]], sample=sample)
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part[ID], job.source(IMAGES), job.public / folder)
"""
        kept = "text=[ID]"
    else:
        parts = "    labelled_table.write_parts(job, train, test, hidden=[TARGET], sample=sample)\n"
        kept = ""
    read = f"job, {_text(draft.table)}, needs=[{needed}]{', ' if kept else ''}{kept}"
    lines = [
        f'"""{title}: {what} of one table held out, scored by {scoring.title}."""',
        "",
        *imports,
        "",
        *(f"{name} = {_text(value)}" for name, value in constants.items() if value),
        "",
        "",
        "def prepare(job: Preparation) -> None:",
        f'    """Hold out {what}, as many and which by `test_size` and `seed`, and write the usual files."""',
        f"    table = labelled_table.read({read})",
        f"    train, test = labelled_table.divided({divided})",
        f"    sample = test[[ID]].assign(**{{TARGET: {scoring.sample}}})",
        parts,
        "",
        "def grade(case: Grading) -> float:",
        f'    """{scoring.title[0].upper()}{scoring.title[1:]} of `TARGET`."""',
        scoring.grade,
    ]
    return "\n".join(lines) + "\n"


def _description(draft: Draft) -> str:
    scoring = _SCORINGS[draft.metric]
    first, second = scoring.example
    if draft.images:
        files = f"""\
| `train/` | images whose `{draft.target}` is known |
| `train.csv` | `{draft.id_column}`, the name of an image in `train/`, and its `{draft.target}` |
| `test/` | images whose `{draft.target}` is to be predicted |"""
        rows, names = "image in `test/`", ("0001.jpg", "0002.jpg")
    else:
        files = f"""\
| `train.csv` | rows whose `{draft.target}` is known |
| `test.csv` | rows to predict: the same columns without `{draft.target}` |"""
        rows, names = "row of `test.csv`", ("17", "4")
    apart = f"\nEach `{draft.group}` is in one of both parts only.\n" if draft.group else ""
    return f"""\
# {draft.name}

{TODO}: what the data are, and what is to be predicted.

## Files

| File | Content |
|---|---|
{files}
| `sample_submission.csv` | a submission in the right form |

{TODO}: every column and its meaning.
{apart}
## Metric

{scoring.title[0].upper()}{scoring.title[1:]}, {scoring.direction} is better:

    {scoring.formula}

## Submission

A CSV with one row for each {rows}, in any order: `{draft.id_column}`, and `{draft.target}`, {scoring.values}.

```
{draft.id_column},{draft.target}
{names[0]},{first}
{names[1]},{second}
```
"""


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
