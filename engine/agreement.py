"""Compare datasets prepared from Kaggle's data with MLE-bench's published checksums; the report contains no data."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from mlebench_console.competitions.grader import grade
from mlebench_console.competitions.model import Competition
from mlebench_console.engine.datasets.prepared import checksums, verification
from mlebench_console.engine.grading.grader import report_on, request_for
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.foundation.problems import Problem

_PACKAGES = ("mlebench-console", "numpy", "pandas")


@dataclass(frozen=True)
class SumOf:
    """The published checksum of a file, and the one found here. None: not known, or no such file."""

    name: str
    published: str | None
    found: str | None


@dataclass(frozen=True)
class Graded:
    """The result of grading a submission from the dataset.

    Attributes:
        name: the file, relative to `prepared/`.
        medal: the medal of its score.
        problem: why it has no score.
    """

    name: str
    score: float | None
    medal: str | None
    problem: str = ""


@dataclass(frozen=True)
class Agreement:
    """The comparison of one competition's dataset, in edition v1.

    Attributes:
        problem: why its dataset could not be examined; everything else is empty then.
        sums: of Kaggle's zip and of prepared tables.
        sample: the sample submission, graded.
        perfect: the answers as a submission, or the gold submission, graded.
    """

    competition_id: str
    problem: str = ""
    sums: tuple[SumOf, ...] = ()
    sample: Graded | None = None
    perfect: Graded | None = None

    @property
    def compared(self) -> int:
        """How many files have a published checksum."""
        return sum(one.published is not None for one in self.sums)

    @property
    def differing(self) -> tuple[str, ...]:
        """The files that differ from the published ones."""
        return tuple(one.name for one in self.sums if one.published not in (None, one.found))

    @property
    def agrees(self) -> bool:
        """Whether all published checksums match, and a perfect submission earns gold."""
        return (
            not self.problem
            and not self.differing
            and self.perfect is not None
            and self.perfect.medal == "gold"
        )


@dataclass(frozen=True)
class AgreementReport:
    """The result of one machine, for sharing: checksums and scores, without data, names or paths of the machine."""

    made_at: str
    python: str
    system: str
    versions: dict[str, str]
    competitions: tuple[Agreement, ...]


def examine(competition: Competition, data_dir: Path) -> Agreement:
    """Compare a prepared dataset with the published checksums, and grade its sample and perfect submissions."""
    folder = dataset_folder(competition, data_dir)
    zips = folder.zips()
    try:
        zip_sum = checksums.zip_md5(zips[0]) if zips else None
        verified = verification.verify(competition, folder)
    except Problem as problem:
        return Agreement(competition.id, _without_paths(problem, data_dir))
    # a zip that was discarded is not compared
    sums = [SumOf(f"{competition.id}.zip", competition.checksums.zip, zip_sum)] if zip_sum else []
    sums += [SumOf(one.name, one.known, one.found) for one in verified.sums]
    perfect = competition.files.gold_submission or competition.answers
    return Agreement(
        competition.id,
        "",
        tuple(sums),
        _graded(competition, data_dir, competition.sample_submission),
        _graded(competition, data_dir, perfect),
    )


def _graded(competition: Competition, data_dir: Path, name: str) -> Graded:
    path = dataset_folder(competition, data_dir).prepared / name
    try:
        request = request_for(path, competition.id, data_dir=data_dir, follow_links=True)
        report = report_on(request, grade(request))
    except Problem as problem:
        return Graded(name, None, None, _without_paths(problem, data_dir))
    return Graded(name, report.score, report.medal, "" if report.valid_submission else report.message)


def _without_paths(problem: Problem, data_dir: Path) -> str:
    """Return a problem's text without folders or user names, so that it can be shared."""
    text = problem.in_one_line().replace(str(data_dir.absolute()), "DATA").replace(str(data_dir), "DATA")
    return text.replace(str(Path.home()), "~")


def report_of(found: Iterable[Agreement]) -> AgreementReport:
    """Return the report on some comparisons, with versions that may explain differences."""
    return AgreementReport(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        versions={name: version(name) for name in _PACKAGES},
        competitions=tuple(found),
    )
