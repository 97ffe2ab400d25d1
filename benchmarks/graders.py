"""Each grader at the real number of rows, beside pandas reading the same two files; cold start is in `grading`.

Where much depends on what stands in the cells, `lifelike` makes both files; elsewhere the rows are those of a scored
submission of the conformance vectors and of its answers, repeated under new ids. Texts are kept as in a plain
install: with pyarrow, pandas reads them several times as fast as any Python object can be made, so that graders of
texts take less time there but a larger multiple of it. Large submissions are graded in the order of the answers, to
which the promise applies, and once more in another order.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.lifelike import MADE
from benchmarks.measuring import Comparison
from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.kit import tables
from mlebench_console.competitions.model import Competition
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Case, Vector

_ROUNDS = 3
_FLOOR_SECONDS = 0.05  # nobody notices less
_TIMES = 2.0
_ROWS = 5_000  # where nothing is said below
_REAL_ROWS = {
    "alaska2-image-steganalysis": 20_000,
    "cdiscount-image-classification-challenge": 706_990,
    "champs-scalar-coupling": 465_000,
    "denoising-dirty-documents": 5_800_000,
    "herbarium-2020-fgvc7": 206_000,
    "herbarium-2021-fgvc8": 451_000,
    "herbarium-2022-fgvc9": 168_000,
    "histopathologic-cancer-detection": 45_000,
    "jigsaw-toxic-comment-classification-challenge": 153_164,
    "jigsaw-unintended-bias-in-toxicity-classification": 97_320,
    "ml2021spring-hw2": 246_000,
    "movie-review-sentiment-analysis-kernels-only": 46_818,
    "nfl-player-contact-detection": 470_000,
    "smartphone-decimeter-2022": 36_000,
    "stanford-covid-vaccine": 25_680,
    "tabular-playground-series-dec-2021": 400_000,
    "tabular-playground-series-may-2022": 100_000,
    "tensorflow2-question-answering": 61_000,
    "ventilator-pressure-prediction": 603_600,
}

# what identifies a row where that is not the first column of the answers alone
_KEYS = {
    "detecting-insults-in-social-commentary": (),
    "osic-pulmonary-fibrosis-progression": ("Patient", "Patient_Week"),
    "rsna-2022-cervical-spine-fracture-detection": ("StudyInstanceUID", "row_id"),
    "smartphone-decimeter-2022": ("UnixTimeMillis",),
    "tensorflow2-question-answering": ("example_id",),
}
_SHUFFLED = range(4 << 20, 80 << 20)  # bytes; it changes little for larger ones, and takes long
_IN_ORDER_ONLY = {"uw-madison-gi-tract-image-segmentation", "vesuvius-challenge-ink-detection"}

# At most five of the 82 may take longer than promised, for reasons that stay.
_NOT_PROMISED = {
    "3d-object-detection-for-autonomous-vehicles": "2 million numbers in texts, which reading leaves alone",
    "AI4Code": "1.8 million names to rank, which reading leaves alone",
    "facebook-recruiting-iii-keyword-extraction": "3.6 million names in texts, which reading leaves alone",
    "uw-madison-gi-tract-image-segmentation": "distances between all surfaces of solids",
    "vinbigdata-chest-xray-abnormalities-detection": "150,000 boxes in texts, which reading leaves alone",
}


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure every competition."""
    with pd.option_context("mode.string_storage", "python"):
        for competition_id in registry.all_ids():
            with tempfile.TemporaryDirectory() as folder:
                yield from _measure(registry.get(competition_id), Path(folder), min(rounds, _ROUNDS))


def _largest(vector: Vector) -> Case:
    scored = [case for case in vector.cases() if case.expect == "score" and not case.unstable]
    return max(scored, key=lambda case: (case.answers is None, case.submission.stat().st_size))


def _measure(competition: Competition, folder: Path, rounds: int) -> Iterator[Comparison]:
    dataset, submission = folder / "prepared", folder / "submission.csv"
    size = _make(competition, dataset, submission)
    # a submission may be some times as large as the sample
    sample = dataset / competition.sample_submission
    sample.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(submission, sample)
    why = _NOT_PROMISED.get(competition.id)
    seconds, reference = _times(competition, dataset, submission, rounds)
    yield Comparison(
        "graders",
        competition.id[:46],
        seconds,
        f"reading {size}" if why is None else f"reading; not promised: {why}"[:46],
        reference,
        None if why else max(_TIMES, _FLOOR_SECONDS / reference),
    )
    if submission.stat().st_size in _SHUFFLED and competition.id not in _IN_ORDER_ONLY:
        tables.write_csv(_read(submission).sample(frac=1, random_state=0), submission)
        seconds, reference = _times(competition, dataset, submission, rounds)
        yield Comparison("graders", competition.id[:36] + " shuffled", seconds, "reading", reference, None)


def _make(competition: Competition, dataset: Path, submission: Path) -> str:
    """Write both files; how large they are, in words."""
    made = MADE.get(competition.id)
    if made is None:
        source = prepared(competition.id)
        shutil.copytree(source, dataset)
        case = _largest(Vector(VECTORS / competition.id))
        answers = case.answers or source / competition.answers
        times = _enlarge(competition.id, answers, case.submission, dataset / competition.answers, submission)
        return f"{times:,} times the vector's rows"
    truth, given = made(np.random.default_rng(0))
    tables.write_csv(truth, dataset / competition.answers)
    tables.write_csv(given, submission)
    return f"{len(given):,} rows"


def _times(competition: Competition, dataset: Path, submission: Path, rounds: int) -> tuple[float, float]:
    parameters = Vector(VECTORS / competition.id).parameters if competition.id not in MADE else None

    def grade() -> None:
        found = judge(GradeRequest(competition.id, submission, dataset, parameters=parameters))
        if found.outcome != "scored":
            raise RuntimeError(f"{competition.id}: {found.outcome} {found.message} {found.detail}")

    def read() -> None:
        for path in (dataset / competition.answers, submission):
            pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_csv(path)

    taken = [(_seconds(grade), _seconds(read)) for _ in range(rounds + 1)][1:]
    seconds, reference = (min(column) for column in zip(*taken, strict=True))
    return seconds, reference


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _enlarge(competition_id: str, wanted: Path, given: Path, answers: Path, submission: Path) -> int:
    """Write both files with their rows repeated until there are as many as in the real ones, under new ids."""
    truth = _read(wanted)
    guesses = _read(given)
    keys = _KEYS.get(competition_id, (truth.columns[0],))
    times = max(_REAL_ROWS.get(competition_id, _ROWS) // len(guesses), 1)
    ids = [table[key] for table in (truth, guesses) for key in keys if key in table]
    numbers = pd.to_numeric(pd.concat(ids), errors="coerce") if ids else pd.Series([0.0])
    largest = int(numbers.max()) if numbers.notna().all() else None
    for table, target in ((truth, answers), (guesses, submission)):
        copies = _repeated(table, keys, times, largest)
        if target.suffix == ".jsonl":
            copies.to_json(target, orient="records", lines=True)
        else:
            tables.write_csv(copies, target)
    return times


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".jsonl":
        return pd.DataFrame(map(json.loads, path.read_text().splitlines()))
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _repeated(table: pd.DataFrame, keys: tuple[str, ...], times: int, largest: int | None) -> pd.DataFrame:
    copies = table.iloc[np.tile(np.arange(len(table)), times)].reset_index(drop=True)
    numbers = np.repeat(np.arange(times), len(table))
    changed = {}
    for key in [key for key in keys if key in table]:
        if largest is None:
            changed[key] = pd.Series(numbers).map("{:x}".format).where(numbers > 0, "") + copies[key].astype(
                str
            )
        else:
            step = 10 ** len(str(largest)) if largest < 10**12 else 1
            changed[key] = pd.to_numeric(copies[key]).astype("int64") + numbers * step
    return copies.assign(**changed)
