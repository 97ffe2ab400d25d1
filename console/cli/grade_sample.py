"""`grade-sample`: grade one submission file, with MLE-bench's report as `--json`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import DataDir, EditionFlag, EditionName, Json, data_dir_of, new_app, say, say_json
from foundation.problems import DataProblem

if TYPE_CHECKING:
    from engine.grading.report import Report

app = new_app()

SubmissionFile = Annotated[Path, typer.Argument(metavar="SUBMISSION", help="The submission's CSV file.")]
CompetitionId = Annotated[str, typer.Argument(metavar="ID", help="Which competition.")]


@app.command()
def grade_sample(
    context: typer.Context,
    submission: SubmissionFile,
    competition_id: CompetitionId,
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """Grade one submission file. An invalid one is a result like any other: exit code 0."""
    from engine import grade_submission

    require_readable(submission)
    report = grade_submission(
        submission, competition_id, data_dir=data_dir_of(context, data_dir), edition=edition.edition
    )
    if json:
        say_json(report.to_dict(extended=True))
    else:
        say(report_text(report))


def require_readable(path: Path) -> None:
    """Refuse a file that a person named but that can't be read; for an agent that would be a result.

    Raises:
        DataProblem: it is missing, a directory, or may not be read.
    """
    try:
        path.open("rb").close()
    except OSError as error:
        raise DataProblem(
            f"{path} can't be read", error.strerror or str(error), "Check the path and the rights on it."
        ) from error


def report_text(report: Report) -> str:
    """Tell a report to a person."""
    better = "lower is better" if report.is_lower_better else "higher is better"
    lines = [f"competition  {report.competition_id} ({better}, edition {report.edition})"]
    if report.valid_submission:
        standing = report.medal or ("above median" if report.above_median else "not above median")
        lines += ["valid        yes", f"score        {report.score:g}: {standing}"]
    else:
        lines += [f"valid        no: {report.message or report.outcome}"]
    lines.append(
        f"cut-offs     gold {report.gold_threshold:g}  silver {report.silver_threshold:g}"
        f"  bronze {report.bronze_threshold:g}  median {report.median_threshold:g}"
    )
    lines += [f"known defect {text}" for text in report.defects]
    return "\n".join(lines)
