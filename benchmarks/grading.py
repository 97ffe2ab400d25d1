"""Grading one submission from cold, beside an import of the libraries that graders usually need."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from engine import prepare_competition
from engine.demo_data import generate

COMPETITION = "spooky-author-identification"


def measure(rounds: int) -> list[Comparison]:
    """Measure what somebody waits who grades one file: process, libraries, reading, score."""
    with tempfile.TemporaryDirectory() as folder:
        raw, data = Path(folder, "raw"), Path(folder, "data")
        generate(COMPETITION, raw)
        prepared = prepare_competition(COMPETITION, data_dir=data, raw=raw)
        submission = Path(folder, "submission.csv")
        submission.write_bytes((prepared / "public" / "sample_submission.csv").read_bytes())
        with submission.open() as stream:
            rows = sum(1 for _ in csv.reader(stream)) - 1
        grade = ("-m", "console", f"--data-dir={data}", "grade-sample", str(submission), COMPETITION)
        return [
            compare(
                "grade",
                python(f"grade-sample ({rows:,} rows)", *grade),
                python("import pandas, sklearn.metrics", "-c", "import pandas, sklearn.metrics"),
                promise=1.0,
                rounds=rounds,
            )
        ]
