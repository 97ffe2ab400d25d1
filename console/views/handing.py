"""An experiment's row made ready to be handed on, with all that must be told with it; it draws nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from console.views.scoreboard import Subject, evidence_of
from engine.scoreboard import Disclosure, Evidence, Row, RowFormat, row_of, row_text
from engine.scoreboard.export import write_bundle
from engine.scoreboard.own_runs import disclosed
from foundation import files
from foundation.problems import DataProblem, UsageProblem
from state.database import open_for_reading


@dataclass(frozen=True)
class Wish:
    """What is to be handed on, and what a person adds to it."""

    subject: Subject
    form: RowFormat = RowFormat.MARKDOWN
    pad_missing: bool = False
    agent: str = ""
    llms: str = ""


@dataclass(frozen=True)
class Handout:
    """A row with its evidence and disclosure."""

    evidence: Evidence
    row: Row
    disclosure: Disclosure

    def text(self, form: RowFormat) -> str:
        """The row as text in a format."""
        return row_text(self.row, self.disclosure, form)


def prepare(state_dir: Path, wish: Wish) -> Handout:
    """Gather the row; waits for the disk, because attempts' own files tell what they ran in.

    Raises:
        Problem: the experiment is gone, or damaged.
    """
    database = open_for_reading(state_dir)
    try:
        evidence = evidence_of(database, wish.subject).labelled(agent=wish.agent, llms=wish.llms)
        row = row_of(evidence, pad_missing=wish.pad_missing)
        return Handout(evidence, row, disclosed(database, evidence, row))
    finally:
        database.close()


def write_row(handout: Handout, form: RowFormat, path: Path) -> Path:
    """Write the row into a new file.

    Raises:
        UsageProblem: it is there already.
        DataProblem: it can't be written.
    """
    if path.exists():
        raise UsageProblem(f"{path} is there already", "", "Name another file.")
    try:
        files.write_text(path, handout.text(form))
    except OSError as error:
        raise DataProblem(f"{path} can't be written", error.strerror or str(error)) from error
    return path


def write_all(handout: Handout, folder: Path, *, now: float) -> Path:
    """Write the bundle into a new folder.

    Raises:
        Problem: it is there already, can't be written, or there is no result to hand in.
    """
    write_bundle(folder, handout.evidence, handout.row, handout.disclosure, now=now)
    return folder
