"""Grading from cold: one file beside an import of the libraries, and many beside grading them in turn in one process.

`python -m benchmarks.grading JSONL DIR` is the latter: a loop over `judge` with the limits of a grader's process.
"""

from __future__ import annotations

import csv
import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from mlebench_console import prepare_competition
from mlebench_console.competitions.grader import LIMITS
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.engine.demo_data import generate
from mlebench_console.engine.rungroups import SubmissionLine, read_submissions, write_submissions
from tests.conformance.trees import VECTORS, Vector

COMPETITION = "spooky-author-identification"
_MANY = 300
_MANY_ROUNDS = 3
_TIMES = 3.0


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure the time to grade one file, and 300 files of all competitions."""
    with tempfile.TemporaryDirectory() as folder:
        yield _one(Path(folder), rounds)
    with tempfile.TemporaryDirectory() as folder:
        yield _many(Path(folder), min(rounds, _MANY_ROUNDS))


def _one(folder: Path, rounds: int) -> Comparison:
    raw, data = folder / "raw", folder / "data"
    generate(COMPETITION, raw)
    prepared = prepare_competition(COMPETITION, data_dir=data, raw=raw)
    submission = folder / "submission.csv"
    submission.write_bytes((prepared / "public" / "sample_submission.csv").read_bytes())
    with submission.open() as stream:
        rows = sum(1 for _ in csv.reader(stream)) - 1
    grade = (
        "-m",
        "mlebench_console.console",
        f"--data-dir={data}",
        "grade-sample",
        str(submission),
        COMPETITION,
    )
    return compare(
        "grade",
        python(f"grade-sample ({rows:,} rows)", *grade),
        python("import pandas, sklearn.metrics", "-c", "import pandas, sklearn.metrics"),
        promise=1.0,
        rounds=rounds,
    )


def _many(folder: Path, rounds: int) -> Comparison:
    data, listed = folder / "data", folder / "submissions.jsonl"
    lines: list[SubmissionLine] = []
    for vector in map(Vector, sorted(VECTORS.iterdir())):
        if vector.parameters:  # they are none of a command's options
            continue
        raw = vector.unpack_raw(folder / "raw" / vector.id)
        prepare_competition(vector.id, data_dir=data, raw=raw)
        lines += [
            SubmissionLine(vector.id, str(case.submission)) for case in vector.cases() if case.answers is None
        ]
    chosen = [lines[place * len(lines) // _MANY] for place in range(_MANY)]
    write_submissions(listed, chosen)
    count = len({line.competition_id for line in chosen})
    grade = ("-m", "mlebench_console.console", f"--data-dir={data}", "grade", f"--submission={listed}")
    return compare(
        "grade",
        python(f"grade ({_MANY} of {count} competitions)", *grade, f"--output-dir={folder}"),
        python("in turn in one process", "-m", "benchmarks.grading", str(listed), str(data)),
        promise=_TIMES,
        rounds=rounds,
    )


def _in_turn(listed: Path, data: Path) -> None:
    """Print the scores of listed submissions, each graded in this process."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMITS.memory_bytes or -1,) * 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMITS.open_files or -1,) * 2)
    for line in read_submissions(listed):
        assert line.submission_path is not None
        found = judge(
            GradeRequest(
                line.competition_id,
                Path(line.submission_path),
                data / line.competition_id / "prepared",
                follow_links=True,
            )
        )
        print(json.dumps([line.competition_id, found.outcome, found.score]))


if __name__ == "__main__":
    _in_turn(Path(sys.argv[1]), Path(sys.argv[2]))
