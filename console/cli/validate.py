"""`validate`: whether a submission has the right form, without telling its score."""

from __future__ import annotations

import typer

from console.cli.common import DataDir, EditionFlag, EditionName, Json, data_dir_of, new_app, say, say_json
from console.cli.grade_sample import CompetitionId, SubmissionFile, require_readable

app = new_app()


@app.command()
def validate(
    context: typer.Context,
    submission: SubmissionFile,
    competition_id: CompetitionId,
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """Tell whether a submission is valid, without its score; exit code 1 when it is not."""
    from engine import validate_submission

    require_readable(submission)
    verdict = validate_submission(
        submission, competition_id, data_dir=data_dir_of(context, data_dir), edition=edition.edition
    )
    if json:
        say_json({"competition_id": competition_id, "valid": verdict.valid, "message": verdict.message})
    else:
        say("valid" if verdict.valid else f"not valid: {verdict.message}")
    if not verdict.valid:
        raise typer.Exit(1)
