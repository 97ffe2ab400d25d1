"""`grade-sample` and `validate` for one file, `grade` for many in a JSONL, and `make-submission`, which writes one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import AtOnce, CompetitionId, Context, DataDir, EditionFlag, new_app
from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_wrapped
from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    from mlebench_console.engine.grading.report import Report

app = new_app()


SubmissionFile = Annotated[Path, Argument(metavar="SUBMISSION", help="The submission's CSV file.")]


@app.command()
def grade_sample(
    context: Context,
    submission: SubmissionFile,
    competition_id: CompetitionId,
    data_dir: DataDir = None,
    edition: EditionFlag = "v1",
) -> None:
    """Grade one submission file. An invalid or missing one is a result too: exit code 0."""
    from mlebench_console import grade_submission

    _require_readable(submission, missing_ok=True)
    base = context.data_dir(data_dir)
    report = grade_submission(submission, competition_id, data_dir=base, edition=edition)
    if context.json:
        say_json(report.to_dict(extended=True))
    else:
        for line in _report_text(report).splitlines():
            say_wrapped(line, more=_LABEL)


@app.command()
def validate(
    context: Context,
    submission: SubmissionFile,
    competition_id: CompetitionId,
    data_dir: DataDir = None,
    edition: EditionFlag = "v1",
) -> None:
    """Check whether a submission has the right form, as agents can while they work; exit code 1 if not."""
    from mlebench_console.competitions import grader
    from mlebench_console.engine.grading.grader import request_for

    _require_readable(submission)
    request = request_for(
        submission,
        competition_id,
        data_dir=context.data_dir(data_dir),
        edition=edition,
        follow_links=True,
        form_only=True,
    )
    found = grader.grade(request)
    is_valid = found.outcome == "scored"
    document = {"competition_id": competition_id, "valid": is_valid, "message": found.message}
    context.say_result(document, "valid" if is_valid else f"not valid: {found.message}")
    if not is_valid:
        raise typer.Exit(1)


@app.command()
def grade(
    context: Context,
    submission: Annotated[
        Path, Option(metavar="JSONL", help="A JSONL file as in MLE-bench, one object per line.")
    ],
    output_dir: Annotated[Path, Option(metavar="DIR", help="Where to write the report.")],
    data_dir: DataDir = None,
    edition: EditionFlag = "v1",
    at_once: AtOnce = None,
) -> None:
    """Grade many submissions, listed in a JSONL file; one that can't be graded (code 3) does not stop the others."""
    from mlebench_console.engine.grading.batch import batch_document, grade_many, write_batch_report
    from mlebench_console.engine.rungroups import read_submissions

    lines = read_submissions(submission)
    reports = grade_many(
        lines,
        data_dir=context.data_dir(data_dir),
        edition=edition,
        at_once=at_once,
        on_graded=partial(_show, len(lines)),
    )
    path = write_batch_report(reports, output_dir, time.time())
    ungraded = [report for report in reports if report.outcome in ("not_prepared", "not_graded")]
    for problem in dict.fromkeys(report.message for report in ungraded):
        say_on_stderr(problem)
    if context.json:
        say_json(batch_document(reports) | {"report_path": str(path)})
    else:
        _say_counts(reports, path)
    if ungraded:
        raise typer.Exit(DataProblem.exit_code)


def _require_readable(path: Path, *, missing_ok: bool = False) -> None:
    """Refuse a file that can't be read if a person named it; for an agent that would be a result.

    Raises:
        DataProblem: it may not be read; or it is missing, or a directory, which `missing_ok` lets pass.
    """
    try:
        path.open("rb").close()
    except OSError as error:
        if missing_ok and isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            return
        raise DataProblem(
            f"{path} can't be read", error.strerror or str(error), "Check the path and its permissions."
        ) from error


# The width of the labels before the facts of a report.
_LABEL = 13


def _report_text(report: Report) -> str:
    """Return the report as text."""
    better = "lower is better" if report.is_lower_better else "higher is better"
    lines = [f"competition  {report.competition_id} ({better}, edition {report.edition})"]
    if report.valid_submission:
        standing = report.medal or ("above median" if report.above_median else "below median")
        lines += ["valid        yes", f"score        {report.score:g}: {standing}"]
        if report.percentile is not None:
            lines.append(f"rank         {wording.rank(report.percentile)}")
    else:
        lines += [f"valid        no: {report.message or report.outcome}"]
        if report.outcome == "grader_error":
            lines += [f"grader       {line}" for line in report.detail.splitlines()]
    lines.append(
        f"cut-offs     gold {report.gold_threshold:g}  silver {report.silver_threshold:g}"
        f"  bronze {report.bronze_threshold:g}  median {report.median_threshold:g}"
    )
    lines += [f"known defect {text}" for text in report.defects]
    return "\n".join(lines)


def _show(total: int, done: int, report: Report) -> None:
    found = f"{report.score:g}" if report.score is not None else report.outcome.replace("_", " ")
    say_on_stderr(f"{done:>{len(str(total))}}/{total}  {report.competition_id}  {found}")


def _say_counts(reports: Sequence[Report], path: Path) -> None:
    from mlebench_console.engine.grading.batch import counts_of

    counts = counts_of(reports)
    say(f"graded   {counts['total_runs']} ({counts['total_runs_with_submissions']} with a submission)")
    say(f"valid    {counts['total_valid_submissions']}")
    reasons = Counter(report.outcome.replace("_", " ") for report in reports if not report.valid_submission)
    if reasons:
        say(f"without  {', '.join(f'{count} {reason}' for reason, count in reasons.most_common())}")
    say(
        f"medals   {counts['total_medals']}: {counts['total_gold_medals']} gold,"
        f" {counts['total_silver_medals']} silver, {counts['total_bronze_medals']} bronze"
    )
    say(f"report   {path}")


@app.command()
def make_submission(
    context: Context,
    metadata: Annotated[Path, Option(metavar="FILE", help="The group's metadata.json, or its folder.")],
    output: Annotated[Path, Option(metavar="JSONL", help="Where to write the list.")] = Path(
        "submission.jsonl"
    ),
    rel_log_path: Annotated[
        str, Option(metavar="PATH", help="The path of a run's log in its folder.")
    ] = "logs/agent.log",
    rel_code_path: Annotated[
        str, Option(metavar="PATH", help="The path of a run's code in its folder.")
    ] = "code/train.py",
) -> None:
    """List a run group's submissions in a JSONL file for 'grade'; missing files of a run are null."""
    from mlebench_console.engine.rungroups import read_group, submissions_of, write_submissions

    lines = submissions_of(read_group(metadata), log=rel_log_path, code=rel_code_path)
    write_submissions(output, lines)
    present = sum(line.submission_path is not None for line in lines)
    text = f"{len(lines)} runs, {present} with a submission, in {output}"
    context.say_result([asdict(line) for line in lines], text)
