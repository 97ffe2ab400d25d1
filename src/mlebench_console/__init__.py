"""The stable interface for programs: prepare, grade and validate, and aggregate runs into rows of the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from mlebench_console.competitions.model import Edition, Parameter
    from mlebench_console.engine.grading.report import Report, Validation
    from mlebench_console.engine.scoreboard.model import Cell, Evidence, Row

__all__ = [
    "aggregate",
    "grade_submission",
    "leaderboard_row",
    "prepare_competition",
    "results_frame",
    "validate_submission",
]


def prepare_competition(
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    raw: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    verify: bool | None = None,
    descriptions: str = "ours",
) -> Path:
    """Prepare a competition's dataset and return its `prepared` folder.

    Args:
        competition_id: the competition.
        data_dir: the data directory; by default the user's cache, shared with MLE-bench.
        raw: an extracted Kaggle folder, which is not changed.
        edition: `v1` reproduces MLE-bench to the byte, `corrected` fixes its defects.
        parameters: replace numbers that the competition fixes for the real data.
        verify: whether to compare with the known checksums; by default only data from Kaggle's zip.
        descriptions: the description beside the data: `ours`, `obfuscated`, `kaggle`, or a folder.

    Raises:
        Problem: the competition is unknown, or its raw data are missing, damaged or different from the known ones.
    """
    from mlebench_console.engine.datasets.preparing import prepare
    from mlebench_console.state.records import PreparationOptions

    options = PreparationOptions("" if raw is None else str(raw), verify, descriptions=descriptions)
    return prepare(competition_id, data_dir=data_dir, edition=edition, parameters=parameters, options=options)


def grade_submission(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
) -> Report:
    """Score one submission file; an invalid one gives a report without a score, never an exception.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    from mlebench_console.competitions.grader import grade
    from mlebench_console.engine.grading.grader import report_on, request_for

    request = request_for(
        submission_path,
        competition_id,
        data_dir=data_dir,
        edition=edition,
        parameters=parameters,
        answers=answers,
        follow_links=True,  # the operator has given this file
    )
    return report_on(request, grade(request))


def validate_submission(
    submission_path: Path | str | None,
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    answers: Path | str | None = None,
) -> Validation:
    """Return whether a submission file is valid, why not, and what it earns; agents get less, from public data alone.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    from mlebench_console.engine.grading.report import Validation

    report = grade_submission(
        submission_path,
        competition_id,
        data_dir=data_dir,
        edition=edition,
        parameters=parameters,
        answers=answers,
    )
    return Validation(report.valid_submission, report.message, report.score, report.medal)


def aggregate(
    *sources: Path | str,
    split: str | Path | Sequence[str] = "split75",
    pad_missing: bool = False,
    seeds: int = -1,
    experiment_id: str | None = None,
    state_dir: Path | str | None = None,
) -> Mapping[str, Cell]:
    """Aggregate runs or reports over a split by MLE-bench's rules; return mean and SEM over seeds by measure name.

    Args:
        sources: grading reports, a table of outcomes, a runs folder, a bundle, or the name of an experiment.
        split: a split's name, a file of ids, or the ids.
        pad_missing: count missing results as no medal instead of dropping incomplete seeds.
        seeds: how many seeds to use; all of them by default.
        experiment_id: which experiment of a runs folder.
        state_dir: where names of experiments are looked up; by default the user's own.

    Raises:
        Problem: a source is not found, conditions are mixed, or results are missing.
    """
    from mlebench_console.competitions.registry import get, read_split
    from mlebench_console.engine.scoreboard.aggregation import measures_on

    members = read_split(split) if isinstance(split, str | Path) else tuple(get(name).id for name in split)
    evidence = _evidence(sources, experiment_id, state_dir)
    measures = measures_on(evidence, members, pad_missing=pad_missing, seeds=seeds)
    return {str(measure): cell for measure, cell in measures.items()}


def leaderboard_row(
    *sources: Path | str,
    pad_missing: bool = False,
    agent: str = "",
    llms: str = "",
    hours: float | None = None,
    experiment_id: str | None = None,
    state_dir: Path | str | None = None,
) -> Row:
    """Return a row of the leaderboard: a standing for each column, and further facts.

    Args:
        sources: as in `aggregate`.
        pad_missing: count missing results as no medal instead of dropping incomplete seeds.
        agent: the agent's name in the row.
        llms: the models that it used.
        hours: the time limit of its runs, if the source does not contain it.
        experiment_id: which experiment of a runs folder.
        state_dir: where names of experiments are looked up; by default the user's own.

    Raises:
        Problem: a source is not found or can't be read. Mixed conditions are in `row.conflict`.
    """
    from mlebench_console.engine.scoreboard.aggregation import row_of

    evidence = _evidence(sources, experiment_id, state_dir)
    return row_of(evidence.labelled(agent=agent, llms=llms, hours=hours), pad_missing=pad_missing)


def results_frame(
    *sources: Path | str, experiment_id: str | None = None, state_dir: Path | str | None = None
) -> pd.DataFrame:
    """Return a data frame for notebooks: one line for each seed of each competition, in the order in which they count.

    Args:
        sources: as in `aggregate`.
        experiment_id: which experiment of a runs folder.
        state_dir: where names of experiments are looked up; by default the user's own.

    Raises:
        Problem: a source is not found or can't be read.
    """
    from mlebench_console.engine.scoreboard.export import trials_frame

    return trials_frame(_evidence(sources, experiment_id, state_dir))


def _evidence(
    sources: Sequence[Path | str], experiment_id: str | None, state_dir: Path | str | None
) -> Evidence:
    from mlebench_console.engine.places import find_places
    from mlebench_console.engine.providers import model_prices
    from mlebench_console.engine.scoreboard.reports import load_evidence

    places = find_places(state_dir=None if state_dir is None else Path(state_dir))
    prices = model_prices(places.config_file)
    return load_evidence(sources, state_dir=places.state_dir, experiment_id=experiment_id, prices=prices)
