"""Datasets: the preparation of each competition's data in one edition, and what the disk holds of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField, Rest
from mlebench_console.console.nouns.competition import ORDER, competition, split_of
from mlebench_console.console.pieces import bar
from mlebench_console.console.rates import Pace
from mlebench_console.console.roles import Drawing, Piece, Role, Signs
from mlebench_console.engine.datasets.sources.access import AccessState, access_of
from mlebench_console.engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD
from mlebench_console.engine.layout import dataset_folder, is_demo, is_prepared
from mlebench_console.engine.needs.needs import kaggle_text
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import datasets
from mlebench_console.state.database import Database
from mlebench_console.state.records import Dataset, DatasetState, DatasetStep, KaggleState, StepState

OPEN = (StepState.WAITING, StepState.WORKING)
STEPS_DONE = (StepState.DONE, StepState.SKIPPED)
ACCESS_ROLES: dict[AccessState, Role] = {
    AccessState.OPEN: "good",
    AccessState.RULES: "warn",
    AccessState.GONE: "warn",
    AccessState.UNKNOWN: "faint",
}
# Names are narrowed for this much of a problem; the details show all of it.
_PROBLEM = 24
_BAR = 8


@dataclass(frozen=True)
class DatasetRow:
    """One competition's data in one edition.

    Attributes:
        dataset: what is known of it; None if it was never asked for.
        kaggle: whether Kaggle can be reached.
        pace: how fast its step goes on.
        folder: where it lies; None if the disk was not read.
        raw: whether its raw data lie there.
    """

    competition_id: str
    edition: str
    dataset: Dataset | None = None
    steps: tuple[DatasetStep, ...] = ()
    kaggle: KaggleState = field(default_factory=KaggleState)
    pace: Pace = field(default_factory=Pace)
    folder: Path | None = None
    raw: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the row."""
        return self.competition_id, self.edition

    @property
    def split(self) -> str:
        """The split of its competition."""
        return split_of(self.competition_id)

    @property
    def state(self) -> DatasetState:
        """The state of its preparation."""
        return self.dataset.state if self.dataset is not None else DatasetState.ABSENT

    @property
    def is_demo(self) -> bool:
        """Whether it is prepared from the demo's synthetic data."""
        return self.dataset is not None and self.dataset.demo and self.state is DatasetState.PREPARED

    @property
    def state_in_words(self) -> str:
        """Its state in words; demo data, with which no results count, are named as such."""
        return "demo data" if self.is_demo else str(self.state)

    @property
    def is_busy(self) -> bool:
        """Whether it is being prepared, or waits to be."""
        return self.state.is_busy

    @property
    def is_verifying(self) -> bool:
        """Whether it is prepared and being verified, or waits to be."""
        return self.state is DatasetState.PREPARED and any(
            step.name == CHECKSUM and step.state in OPEN for step in self.steps
        )

    @property
    def access(self) -> AccessState:
        """Kaggle's last answer about access to the data."""
        return access_of(self.state, self.steps)

    @property
    def waits_for_kaggle(self) -> bool:
        """Whether it waits because Kaggle is unreachable."""
        asks = any(step.name in (CHECK, DOWNLOAD) and step.state in OPEN for step in self.steps)
        return asks and self.state is DatasetState.WAITING and self.kaggle.unreachable_since is not None

    @property
    def problem(self) -> str:
        """Its problem, or what it waits for; empty if nothing."""
        if self.waits_for_kaggle:
            return kaggle_text(self.kaggle)
        if self.dataset is None:
            return ""
        text = self.dataset.problem_text
        if self.dataset.retry_at is not None and self.state is DatasetState.WAITING:
            return f"{text}; tried again at {wording.clock(self.dataset.retry_at)}"
        return text

    @property
    def problem_code(self) -> str:
        """The class of its problem, or of what it waits for; empty if there is none."""
        return "" if self.dataset is None else self.dataset.problem_code

    @property
    def problem_in_short(self) -> str:
        """Its problem in the few words of a list: what a person has to do."""
        if self.state is DatasetState.REFUSED and self.access is AccessState.RULES:
            return "accept its rules"
        if self.state is DatasetState.UNAVAILABLE:
            return "gone from Kaggle"
        return self.problem

    @property
    def priority(self) -> int:
        """Its priority; waiting datasets with higher ones are prepared first."""
        return self.dataset.priority if self.dataset is not None else 0

    @property
    def step(self) -> DatasetStep | None:
        """The step being worked on, or the one that failed."""
        return next(
            (step for step in self.steps if step.state in (StepState.WORKING, StepState.FAILED)), None
        )

    @property
    def going(self) -> DatasetStep | None:
        """The step being worked on."""
        return self.step if self.step is not None and self.step.state is StepState.WORKING else None

    @property
    def steps_done(self) -> int:
        """The number of steps that are done."""
        return sum(step.state in STEPS_DONE for step in self.steps)

    @property
    def bytes_on_disk(self) -> int | None:
        """The size of the prepared data, if known."""
        return self.dataset.bytes_on_disk if self.dataset and self.state is DatasetState.PREPARED else None

    @property
    def kaggle_bytes(self) -> int | None:
        """The size of Kaggle's zip as stated by Kaggle."""
        return next(
            (step.total for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes"), None
        )

    @cached_property
    def zip_bytes(self) -> int | None:
        """The size of Kaggle's zip as stated by Kaggle, else by the competition's facts."""
        found = competition(self.competition_id)
        return self.kaggle_bytes or (int(found.size_gb * 1e9) if found and found.size_gb else None)

    @property
    def downloaded_bytes(self) -> int:
        """The number of bytes downloaded so far."""
        return next((step.done for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes"), 0)

    @property
    def bytes_to_download(self) -> int:
        """The number of bytes of a requested dataset still to be downloaded, as far as known."""
        step = next((step for step in self.steps if step.name == DOWNLOAD), None)
        if not self.is_busy or step is None or step.state not in OPEN:
            return 0
        return max(0, (self.zip_bytes or 0) - step.done)


def dataset_rows(database: Database) -> list[DatasetRow]:
    """Read all datasets, those in the state and the rest of the benchmark, ordered by split."""
    steps: defaultdict[tuple[str, str], list[DatasetStep]] = defaultdict(list)
    for step in datasets.all_steps(database):
        steps[step.competition_id, step.edition].append(step)
    known = {(found.competition_id, found.edition): found for found in datasets.all_datasets(database)}
    kaggle = datasets.kaggle(database)
    wanted = dict.fromkeys([*known, *((name, "v1") for name in registry.all_ids())])
    return sorted((DatasetRow(*key, known.get(key), tuple(steps[key]), kaggle) for key in wanted), key=place)


def place(row: DatasetRow) -> tuple[int, str, bool]:
    """Return the place of a dataset in a list: by split, then by name."""
    return ORDER.index(row.split), row.competition_id.lower(), row.edition != "v1"


def on_disk(row: DatasetRow, data_dir: Path) -> DatasetRow:
    """Join a dataset with what its folder holds, which decides whether it is prepared."""
    known = row.dataset or Dataset(row.competition_id, row.edition, DatasetState.ABSENT)
    # Only what the state has as prepared is not believed.
    absent = replace(known, state=DatasetState.ABSENT) if row.state is DatasetState.PREPARED else known
    root = data_dir / row.competition_id
    try:
        facts = registry.get(row.competition_id)
        folder = dataset_folder(facts, data_dir, edition_named(row.edition))
        if not is_prepared(facts, folder):
            return replace(row, dataset=absent, folder=root, raw=folder.has_raw_data)
        demo = is_demo(folder) or row.is_demo
    except DataProblem as problem:  # of this one alone
        unread = replace(absent, problem_record=problem.record)
        return replace(row, dataset=unread, folder=root)
    prepared = replace(known, state=DatasetState.PREPARED, demo=demo)
    return replace(row, dataset=prepared, folder=root, raw=folder.has_raw_data)


def states(signs: Signs) -> dict[DatasetState, Piece]:
    """Return the sign and the role of every state, the most urgent first."""
    return {
        DatasetState.REFUSED: ("?", "warn"),
        DatasetState.UNAVAILABLE: (signs.invalid, "warn"),
        DatasetState.FAILED: (signs.failed, "bad"),
        DatasetState.WORKING: (signs.running, "running"),
        DatasetState.WAITING: (signs.queued, "dim"),
        DatasetState.PREPARED: (signs.done, "good"),
        DatasetState.ABSENT: (signs.dot, "dim"),
    }


def draw_state(row: DatasetRow, drawing: Drawing) -> Piece:
    """Return the sign and the word of a dataset's state."""
    sign, role = states(drawing.signs)[row.state]
    return f"{sign} {row.state_in_words}", "warn" if row.is_demo else role


def size_text(row: DatasetRow) -> str:
    """Write the size of the prepared data, else that of Kaggle's zip."""
    known = row.bytes_on_disk or row.kaggle_bytes
    if known:
        return wording.size(known)
    return f"~{wording.size(row.zip_bytes)}" if row.zip_bytes else wording.UNKNOWN


def pace_words(step: DatasetStep, pace: Pace) -> tuple[str, str]:
    """Write the rate and the remaining time of a step; empty while unknown."""
    if not pace.rate:
        return "", ""
    rate = f"{wording.size(pace.rate)}/s" if step.unit == "bytes" else f"{pace.rate:,.0f}/s"
    return rate, "" if pace.eta is None else wording.span(pace.eta)


def amount_words(step: DatasetStep) -> str:
    """Write how much of a step is done, and of one that does not go on only of how much; empty while unknown."""
    if not step.total:
        return ""
    if step.unit != "bytes":
        return f"{step.done:,} of {step.total:,}"
    done = f"{wording.size(step.done)} of " if step.state is StepState.WORKING else ""
    return f"{done}{wording.size(step.total)}"


def _of_step(text: Callable[[DatasetRow, DatasetStep], str]) -> Callable[[DatasetRow, Drawing], str]:
    """Return the cell of what is said of the step that is being worked on; empty without one."""
    return lambda row, _drawing: "" if row.going is None else text(row, row.going)


def _competition(row: DatasetRow, drawing: Drawing) -> Cell:
    if row.edition == "v1":
        return row.competition_id
    # A name that is cut keeps its edition.
    shorter = [f"{row.competition_id[:length]}{drawing.signs.ellipsis}" for length in range(48, 4, -2)]
    return Forms([f"{text} ({row.edition})" for text in (row.competition_id, *shorter)])


def _step(row: DatasetRow, drawing: Drawing) -> Cell:
    """Return the step being worked on; a problem replaces the progress."""
    if row.problem and not row.is_verifying:
        role = states(drawing.signs)[row.state][1]
        if row.state in (DatasetState.WAITING, DatasetState.PREPARED, DatasetState.ABSENT):
            role = "bad" if row.state is DatasetState.ABSENT else "warn"
        return Rest(((row.problem_in_short, role),), least=_PROBLEM)
    if row.going is not None:
        return row.going.name
    return Rest((("to be verified", "dim"),)) if row.is_verifying else ""


def _done(row: DatasetRow, drawing: Drawing) -> Cell:
    if row.going is None or not row.going.total:
        return ""
    share = min(1.0, row.going.done / row.going.total)
    full, empty = bar(share, _BAR, drawing.signs)
    return (full, "running"), (empty, "faint"), (f"{share:5.0%}", "text")


def _doing(row: DatasetRow, drawing: Drawing) -> Cell:
    """Return the state, or the step that is being worked on."""
    if row.going is None:
        return (draw_state(row, drawing),)
    share = f" {min(1.0, row.going.done / row.going.total):.0%}" if row.going.total else ""
    return ((f"{drawing.signs.running} {row.going.name}{share}", "running"),)


def _access(row: DatasetRow, _drawing: Drawing) -> Cell:
    return (("-" if row.access is AccessState.UNKNOWN else row.access.value, ACCESS_ROLES[row.access]),)


def dataset_document(row: DatasetRow, _now: float) -> dict[str, Any]:
    """Return a dataset's state, problem, sizes and folder."""
    found = competition(row.competition_id)
    return {
        "competition_id": row.competition_id,
        "edition": row.edition,
        "state": row.state.value,
        "access": row.access.value,
        "problem": row.problem,
        "problem_code": row.problem_code,
        "priority": row.priority,
        "demo": row.is_demo,
        "raw": row.raw,
        "size_gb": None if found is None else found.size_gb,
        "bytes_on_disk": row.bytes_on_disk,
        "folder": str(row.folder or ""),
    }


DATASET = Noun[DatasetRow](
    "dataset",
    key=lambda row: row.key,
    document=dataset_document,
    fields=(
        NounField("competition", _competition, 32, grows=56, words=True),
        NounField("split", lambda row, _: row.split, 6, words=True, matches="beginning"),
        NounField("edition", lambda row, _: row.edition, 9, words=True, matches="beginning"),
        NounField("state", lambda row, _: row.state_in_words, 11, words=True, matches="beginning"),
        NounField("drawn", lambda row, drawing: (draw_state(row, drawing),), 13, title="state"),
        NounField("doing", _doing, 14, title="state"),
        NounField("size", lambda row, _: size_text(row), 8, right=True, gap=1, role="dim"),
        NounField(
            "access", _access, 6, drop=1, words=True, matches=lambda row, value: row.access.startswith(value)
        ),
        NounField("raw", lambda row, _: "yes" if row.raw else "no", 8, title="raw data"),
        NounField("disk", lambda row, _: wording.size(row.bytes_on_disk), 8, title="on disk", right=True),
        NounField("zip", lambda row, _: wording.size(row.zip_bytes), 8, title="Kaggle's zip", right=True),
        NounField("step", _step, 9, grows=9),
        NounField(
            "count",
            _of_step(lambda row, _: f"{row.steps_done + 1}/{len(row.steps)}"),
            3,
            title="",
            drop=2,
            gap=1,
        ),
        NounField("done", _done, 13, title="", gap=1),
        NounField("amount", _of_step(lambda _, step: amount_words(step)), 18, right=True),
        NounField(
            "rate",
            _of_step(lambda row, step: pace_words(step, row.pace)[0]),
            9,
            drop=3,
            right=True,
            gap=1,
            role="dim",
        ),
        NounField(
            "left", _of_step(lambda row, step: pace_words(step, row.pace)[1]), 5, drop=5, right=True, gap=1
        ),
        NounField("note", _of_step(lambda _, step: step.note), 8, grows=REST, title="", drop=4, role="dim"),
        NounField("problem", lambda row, _: row.problem, 24, grows=REST),
    ),
)
