"""`grade`: grade many submissions, listed in MLE-bench's JSONL, into MLE-bench's report."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.editions import EditionFlag, EditionName
from console.cli.invocation import DataDir, Json, data_dir_of
from console.cli.lazy import new_app
from console.cli.output import complain, say, say_json
from foundation.problems import DataProblem, Problem

if TYPE_CHECKING:
    from competitions.model import Edition
    from engine.grading.batch import SubmissionLine
    from engine.grading.report import Report

app = new_app()


@app.command()
def grade(
    context: typer.Context,
    submission: Annotated[
        Path, typer.Option(metavar="JSONL", help="One object a line, as MLE-bench has it.")
    ],
    output_dir: Annotated[Path, typer.Option(metavar="DIR", help="Where the report is written.")],
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """Grade many submissions, listed in a JSONL file; one that can't be graded (code 3) stops no other."""
    from competitions import registry
    from engine.grading.batch import BatchReport, read_submissions, write_batch_report

    lines = read_submissions(submission)
    for line in lines:
        registry.get(line.competition_id)
    base = data_dir_of(context, data_dir)
    # The threads only wait: each submission is graded in a process of its own.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        graded = list(pool.map(lambda line: _grade_line(line, base, edition.edition), lines))
    batch = BatchReport(tuple(report for report, _ in graded))
    path = write_batch_report(batch, output_dir, time.time())
    problems = [problem for _, problem in graded if problem is not None]
    for problem in dict.fromkeys(str(problem) for problem in problems):
        complain(problem)
    if json:
        say_json(batch.to_dict(extended=True) | {"report_path": str(path)})
    else:
        counts = batch.to_dict()
        say(f"graded   {counts['total_runs']} ({counts['total_runs_with_submissions']} with a submission)")
        say(f"valid    {counts['total_valid_submissions']}")
        say(
            f"medals   {counts['total_medals']}: {counts['total_gold_medals']} gold,"
            f" {counts['total_silver_medals']} silver, {counts['total_bronze_medals']} bronze"
        )
        say(f"report   {path}")
    if problems:
        raise typer.Exit(DataProblem.exit_code)


def _grade_line(line: SubmissionLine, data_dir: Path, edition: Edition) -> tuple[Report, Problem | None]:
    from competitions import registry
    from competitions.judging import Judgement
    from engine.grading.child import GradeRequest, grade_in_child
    from engine.grading.report import make_report

    request = GradeRequest(
        line.submission_path, line.competition_id, str(data_dir), edition=edition, follow_links=True
    )
    try:
        return grade_in_child(request), None
    except Problem as problem:
        # A dataset that is not prepared says nothing about the submission; the line is kept all the same.
        path = None if line.submission_path is None else Path(line.submission_path)
        there = path is not None and path.is_file() and path.suffix.lower() == ".csv"
        judgement = Judgement("grader_error" if there else "no_file", None, str(problem))
        competition = registry.get(line.competition_id)
        return make_report(competition, judgement, path, edition, datetime.now(UTC).isoformat()), problem
