"""Findings of detectors in runs, the most serious first, with people's reviews."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.console.nouns.integrity import FindingRow, finding_rows
from mlebench_console.engine.scoreboard.integrity import PUBLIC_KERNEL
from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import integrity, runs
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Excerpt, RunIntegrity
from mlebench_console.state.records import Run

_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class ExcerptInFile:
    """A passage with the lines before and after it, if its file still contains it.

    Attributes:
        line: the whole line that contains a passage of one line.
        written_at: when the file was written last; None if unknown.
        trouble: why the lines around it can't be shown.
    """

    excerpt: Excerpt
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    line: str = ""
    written_at: float | None = None
    trouble: str = ""


def passages(one: FindingRow, beside: int) -> tuple[ExcerptInFile, ...]:
    """Read the passages of a finding with up to `beside` lines before and after each; waits for the disk."""
    return tuple(_in_its_file(excerpt, one.file_of(excerpt), beside) for excerpt in one.finding.excerpts)


def _in_its_file(excerpt: Excerpt, path: Path | None, beside: int) -> ExcerptInFile:
    if path is None:
        is_elsewhere = excerpt.source.startswith(PUBLIC_KERNEL)
        return ExcerptInFile(excerpt, trouble="" if is_elsewhere else "the file is no longer there")
    try:
        written_at = path.stat().st_mtime
        with reading_untrusted(path, max_bytes=_MOST_BYTES) as stream:
            lines = stream.read().decode("utf-8", "replace").split("\n")
    except (DataProblem, OSError):
        return ExcerptInFile(excerpt, trouble="the file can't be read")
    # Line numbers of a notebook count only its code cells.
    if path.suffix == ".ipynb" or not excerpt.first_line or not excerpt.text:
        return ExcerptInFile(excerpt, written_at=written_at)
    first, text = excerpt.first_line - 1, excerpt.text.split("\n")
    last = first + len(text)
    # The last line of a long passage may be cut, and a passage of one line may be a part of it.
    if lines[first : last - 1] != text[:-1] or text[-1].strip() not in "".join(lines[last - 1 : last]):
        return ExcerptInFile(excerpt, written_at=written_at, trouble="the file has changed since")
    return ExcerptInFile(
        excerpt,
        tuple(lines[max(0, first - beside) : first]),
        tuple(lines[last : last + beside]),
        lines[first] if len(text) == 1 else "",
        written_at,
    )


@dataclass(frozen=True)
class IntegrityFacts:
    """The findings in some runs.

    Attributes:
        runs: the number of runs that have ended.
        looked_at: the number of them that detectors have examined.
        flagged: the number of runs with a flag that is not cleared.
        findings: the most serious first, cleared ones last.
    """

    runs: int
    looked_at: int
    flagged: int
    findings: tuple[FindingRow, ...]


def integrity_facts(database: Database, run_ids: Collection[int] | None = None) -> IntegrityFacts:
    """Read the findings in some runs, or in all."""
    members = {
        one.id: one
        for one in runs.of_all_sweeps(database)
        if one.has_ended and (run_ids is None or one.id in run_ids)
    }
    known = integrity.of_runs(database, members)
    found = [
        shown
        for number, one in known.items()
        if one.results
        for shown in _of_run(database, members[number], one)
    ]
    found.sort(key=lambda one: (one.is_cleared, -one.finding.severity.rank, one.run.id, one.result.detector))
    return IntegrityFacts(
        len(members),
        sum(bool(one.results) for one in known.values()),
        sum(one.severity.is_flag for one in known.values()),
        tuple(found),
    )


def _of_run(database: Database, run: Run, known: RunIntegrity) -> list[FindingRow]:
    attempt = runs.latest_attempt(database, run.id)
    directory = database.path.parent / (attempt.directory if attempt is not None else "")
    return finding_rows(run, known, directory)
