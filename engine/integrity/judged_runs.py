"""Judge runs: choose the windows to read, estimate the cost, save the results, and write MLE-bench's own format.

The questions and the calls themselves are in `engine.integrity.judge`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlebench_console.engine.integrity.judge import (
    ADDRESSED,
    VERSION,
    Judge,
    JudgeQuestion,
    JudgeVerdict,
    Reading,
    findings_of,
    hash_of_questions,
    rules_for,
    sum_of_costs,
)
from mlebench_console.engine.integrity.material import ExaminedRun
from mlebench_console.engine.integrity.results import is_current, save_results
from mlebench_console.engine.integrity.texts import texts_of
from mlebench_console.engine.integrity.windows import Window, most_telling, windows_of
from mlebench_console.engine.requests import NewResults
from mlebench_console.foundation.clock import Clock, run_group_stamp
from mlebench_console.foundation.files import csv_text, write_text
from mlebench_console.foundation.problems import writing
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Layer, RunIntegrity, Severity

# The folder of cached answers, in the state directory.
ANSWERS = "answers"
# How many runs are judged concurrently before their results are saved.
AT_ONCE = 4
_PREFIX = "judge-"
_MOST_EXCERPTS = 10


@dataclass(frozen=True)
class JudgedRun:
    """A run and the windows of it that the judge reads, out of `total`."""

    examined: ExaminedRun
    windows: tuple[Window, ...]
    total: int
    content: str


def gather(
    chosen: Iterable[ExaminedRun],
    questions: Sequence[JudgeQuestion],
    model: str,
    most: int,
    earlier: Mapping[int, RunIntegrity],
    *,
    again: bool = False,
) -> Iterator[JudgedRun | None]:
    """Yield the windows to read of each run; None for a run with current results.

    Windows with lines in which other detectors have found something are preferred.
    """
    rules = rules_for(questions)
    asked = hash_of_questions(questions, model, most)
    versions = dict.fromkeys(_detectors(questions), VERSION)
    for examined in chosen:
        content = hashlib.sha256(f"{asked}{examined.content}".encode()).hexdigest()
        before = earlier.get(examined.run.id)
        if not again and is_current(before, versions, content):
            yield None
            continue
        marked: dict[str, set[int]] = {}
        for result in () if before is None else before.results:
            for excerpt in (one for finding in result.findings for one in finding.excerpts):
                lines = range(excerpt.first_line, min(excerpt.last_line, excerpt.first_line + 200) + 1)
                marked.setdefault(excerpt.source, set()).update(lines)
        windows, total = most_telling(windows_of(texts_of(examined), rules, marked), most, examined.content)
        yield JudgedRun(examined, tuple(windows), total, content)


def _detectors(questions: Sequence[JudgeQuestion]) -> tuple[str, ...]:
    return (*(f"{_PREFIX}{one.id}" for one in questions), ADDRESSED)


def examine(chosen: Sequence[JudgedRun], judge: Judge, clock: Clock) -> Iterator[NewResults]:
    """Judge runs, save the results in their directories, and yield each finished run.

    Raises:
        EnvironmentProblem: the endpoint can't be used; its earlier answers are cached.
    """

    async def read(some: Sequence[JudgedRun]) -> list[list[Reading]]:
        async with judge.endpoint:
            return await judge.read_all([one.windows for one in some])

    for start in range(0, len(chosen), AT_ONCE):
        some = chosen[start : start + AT_ONCE]
        for one, readings in zip(some, asyncio.run(read(some)), strict=True):
            yield save_results(one.examined, Layer.JUDGE, _results_of(one, readings, judge, clock))


def _results_of(
    one: JudgedRun, readings: Sequence[Reading], judge: Judge, clock: Clock
) -> list[DetectorResult]:
    read = sum(reading.is_complete for reading in readings)
    # Without a content hash, an incomplete judgement is made again the next time.
    content = one.content if read == len(readings) else ""
    dollars = sum_of_costs(reading.dollars for reading in readings)
    share = None if dollars is None else dollars / len(_detectors(judge.questions))

    def result(detector: str, findings: tuple[Finding, ...], problem: str = "") -> DetectorResult:
        return DetectorResult(
            detector,
            Layer.JUDGE,
            VERSION,
            content,
            clock.now(),
            findings,
            coverage=f"{read} of {one.total} windows read",
            problem=problem,
            model=str(judge.endpoint.model),
            usd=share,
        )

    results = []
    for question in judge.questions:
        verdicts = [found for reading in readings if (found := reading.verdicts.get(question.id))]
        failed = verdicts and not any(verdict.is_read for verdict in verdicts)
        problem = verdicts[0].reason if failed else ""
        results.append(result(f"{_PREFIX}{question.id}", findings_of(question, verdicts), problem))
    return [*results, result(ADDRESSED, _addressing(one.windows, readings))]


def _addressing(windows: Sequence[Window], readings: Sequence[Reading]) -> tuple[Finding, ...]:
    """Return the findings of lines that address the judge; certain ones are suspicious, others are notes."""
    lines: dict[Excerpt, bool] = {}
    for window in windows:
        # What rules alone find nothing in the text can deceive.
        for number, (_, line) in enumerate(window.lines, start=1):
            if line.hidden:
                lines[replace(window.excerpt(number), text=f"{line.text} [{line.hidden}]")] = True
            elif ADDRESSED in line.hits:
                lines[window.excerpt(number)] = True
    for reading in readings:
        for excerpt, is_sure in reading.addressed.items():
            lines[excerpt] = lines.get(excerpt, False) or is_sure
    found = []
    for is_sure, severity, statement in (
        (True, Severity.SUSPICIOUS, "it tries to talk to its judge"),
        (False, Severity.NOTE, "lines that may be meant for a judge"),
    ):
        excerpts = tuple(excerpt for excerpt, sure in lines.items() if sure is is_sure)
        if excerpts:
            found.append(
                Finding(severity, statement, excerpts[:_MOST_EXCERPTS], {"lines": float(len(excerpts))})
            )
    return tuple(found)


# The format of MLE-bench's detector


def verdict_of(result: DetectorResult) -> JudgeVerdict:
    """Return the verdict of a saved result."""
    if result.problem or (result.findings and not result.severity.is_flag):
        return JudgeVerdict.UNSURE
    return JudgeVerdict.YES if result.findings else JudgeVerdict.NO


def write_mlebench_format(
    folder: Path,
    judged: Sequence[ExaminedRun],
    results: Mapping[int, RunIntegrity],
    questions: Sequence[JudgeQuestion],
    now: float,
) -> tuple[Path, Path]:
    """Write the table and the summary of MLE-bench's rule violation detector; return their paths.

    Runs are listed by competition and seed. As in MLE-bench, an undecided answer is an empty cell, and counts as no in
    the summary.
    """
    columns = {f"{_PREFIX}{one.id}": one.column for one in questions}
    heading = ["competition_id", "submission_path"]
    heading += [name for column in columns.values() for name in (column, f"{column}_binarized")]
    lines: list[list[object]] = [list(heading)]
    counts = dict.fromkeys(columns, 0)
    for one in sorted(judged, key=lambda one: (one.run.competition_id, one.run.seed)):
        submission = "" if one.final is None else str(one.state_dir / one.final.path)
        line: list[object] = [one.run.competition_id, submission]
        for detector in columns:
            text, verdict = _as_answered(results[one.run.id].result_of(detector))
            counts[detector] += verdict is JudgeVerdict.YES
            line += [text, {JudgeVerdict.YES: "True", JudgeVerdict.NO: "False"}.get(verdict, "")]
        lines.append(line)
    share = {
        column: f"{100 * counts[detector] / max(1, len(judged)):.1f}%" for detector, column in columns.items()
    }
    stamp = run_group_stamp(now)
    table, summary = folder / f"analysis_{stamp}.csv", folder / f"analysis_summary_{stamp}.json"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(table, csv_text(lines))
        write_text(summary, json.dumps(share, indent=2))
    return table, summary


def _as_answered(result: DetectorResult | None) -> tuple[str, JudgeVerdict]:
    """Return a verdict and its text in the wording of MLE-bench's detector."""
    if result is None:
        return "", JudgeVerdict.UNSURE
    verdict = verdict_of(result)
    statements = (
        "; ".join(finding.statement for finding in result.findings) or "Nothing of the kind was found"
    )
    where = [
        f"{one.source}:{one.first_line}: {one.text}"
        for finding in result.findings
        for one in finding.excerpts
        if finding.severity.is_flag
    ]
    text = "\n".join([f"{result.problem or statements} ({result.coverage}, {result.model}).", *where])
    final = "" if verdict is JudgeVerdict.UNSURE else f" The final answer is {verdict}."
    return f"{text}{final}", verdict
