"""The facts of one competition as frozen dataclasses; how they are read from TOML is in `reading`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mlebench_console.competitions.medals import Thresholds
from mlebench_console.foundation.problems import UsageProblem

Edition = Literal["v1", "corrected"]
EDITIONS: tuple[Edition, ...] = ("v1", "corrected")

CONTENT = "content:"
"""Prefix of a checksum over a parquet file's content, to distinguish it from one over the file's bytes."""

Severity = Literal["leak", "wrong_score", "crash", "cosmetic"]
Treatment = Literal["mended", "told", "open"]
Parameter = int | float | str | bool | None


@dataclass(frozen=True)
class Prize:
    """The prize for a place on Kaggle's leaderboard.

    Attributes:
        position: the place, as Kaggle names it.
        value: US dollars.
    """

    position: str
    value: int | float


@dataclass(frozen=True)
class Metric:
    """How submissions are scored, in words and as a formula.

    Attributes:
        name: what it is called.
        direction: which scores are better; nothing else says so.
        formula: how a score is computed.
        details: what the formula leaves open, such as clipping, ties or empty predictions.
    """

    name: str
    direction: Literal["higher", "lower"]
    formula: str
    details: str = ""


@dataclass(frozen=True)
class Checksums:
    """MD5 sums of the real data in edition v1; of a parquet file only a sum of its content is compared.

    Attributes:
        zip: of the zip that Kaggle delivers.
        public: of the tables that lie directly in `public/`, by name.
        private: of those in `private/`.
    """

    zip: str | None = None
    public: Mapping[str, str] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Defect:
    """Something wrong in edition v1 of a competition, and what edition corrected does about it.

    Attributes:
        id: its name within the competition, in lower case with dashes; the tests that show it mended give it.
        text: what is wrong in edition v1.
        severity: what it does: `leak`, `wrong_score`, `crash`, or `cosmetic`, which touches no result.
        treatment: `mended` in edition corrected, only `told` (cosmetic), or still `open`.
        remedy: how it is mended, or what would be right.
        known: where MLE-bench itself mentions it.
    """

    id: str
    text: str
    severity: Severity
    treatment: Treatment
    remedy: str = ""
    known: str | None = None


@dataclass(frozen=True)
class KnownDifference:
    """Submissions of which edition v1 makes something else than MLE-bench, on purpose.

    Attributes:
        text: what both make of them, and why.
        damage: the kinds of damage, as `tools/fuzz` names them, that lead to such submissions.
    """

    text: str
    damage: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """What `prepare` writes that others read, relative to `prepared/`; it must be there in both editions.

    Attributes:
        answers: the answers, below `private/`.
        sample_submission: the sample submission, below `public/`, or below `private/` where agents get it in an
            archive.
        gold_submission: a perfect submission, where the answers are not one themselves.
    """

    answers: str
    sample_submission: str
    gold_submission: str | None = None


@dataclass(frozen=True)
class PublishedFile:
    """A raw file that Kaggle does not deliver; it is downloaded unless it lies in `raw/`, packed or unpacked.

    Attributes:
        name: what it is called among the raw files.
        url: where it is published.
    """

    name: str
    url: str


@dataclass(frozen=True)
class Obfuscation:
    """What an obfuscated description must not tell.

    Attributes:
        hosts: who held the competition and what else it is known by.
        renamings: phrases, and what is said instead.
    """

    hosts: tuple[str, ...] = ()
    renamings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Competition:
    """Everything that is fixed about one competition.

    Attributes:
        id: its name everywhere, which is its folder's: letters, digits and dashes.
        name: its title.
        category: what kind of data and task, such as `Tabular` or `Image Classification`.
        complexity: the split it belongs to (`low`, `medium`, `high`, or `dev`, which is outside the 75).
        kaggle_type: whether Kaggle took files (`simple`) or notebooks (`code`).
        awards_medals: whether Kaggle gave medals.
        prizes: what places were worth.
        metric: how submissions are scored.
        grader_name: what MLE-bench calls its grader.
        thresholds: the cut-offs of medals.
        checksums: of the real data.
        files: what `prepare` writes that others read.
        published: raw files that others than Kaggle publish.
        parameters: the numbers that the split and the metric fix; callers may replace them.
        classes: the names of the classes, where the competition fixes a list of them.
        defects: what is wrong in edition v1.
        differences: where edition v1 differs from MLE-bench on purpose.
        excluded: why edition corrected leaves this competition out.
        size_gb: how large Kaggle's zip is.
        needs: libraries beyond pandas and numpy that its task imports.
        obfuscation: what an obfuscated description must not tell, and says instead.
        folder: where its description and task lie.
    """

    id: str
    name: str
    category: str
    complexity: Literal["low", "medium", "high", "dev"]
    kaggle_type: Literal["simple", "code"]
    awards_medals: bool
    prizes: tuple[Prize, ...] = ()
    metric: Metric
    grader_name: str
    thresholds: Thresholds
    checksums: Checksums = Checksums()
    files: Files
    published: tuple[PublishedFile, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()
    differences: tuple[KnownDifference, ...] = ()
    excluded: str | None = None
    size_gb: float | None = None
    needs: tuple[str, ...] = ()
    obfuscation: Obfuscation = Obfuscation()
    folder: Path

    @property
    def answers(self) -> str:
        """The answers file, relative to the competition's `prepared/` folder."""
        return self.files.answers

    @property
    def sample_submission(self) -> str:
        """The sample submission, relative to `prepared/`."""
        return self.files.sample_submission

    @property
    def facts_path(self) -> Path:
        """The file with these facts."""
        return self.folder / "competition.toml"

    @property
    def task_path(self) -> Path:
        """The module with `prepare` and `grade`."""
        return self.folder / "task.py"

    @property
    def description_path(self) -> Path:
        """The text from which an agent works."""
        return self.folder / "description.md"

    @property
    def available(self) -> bool:
        """Whether this competition can be prepared and graded here: its task.py exists."""
        return self.task_path.is_file()

    def defects_in(self, edition: Edition) -> tuple[str, ...]:
        """Return the defects that affect results of an edition, without the cosmetic ones."""
        return tuple(
            defect.text
            for defect in self.defects
            if defect.severity != "cosmetic" and not (edition == "corrected" and defect.treatment == "mended")
        )


def edition_named(name: str) -> Edition:
    """Return the edition with this name.

    Raises:
        UsageProblem: there is no such edition.
    """
    for edition in EDITIONS:
        if name == edition:
            return edition
    raise UsageProblem(f"there is no edition '{name}'", "", f"Choose one of {', '.join(EDITIONS)}.")
