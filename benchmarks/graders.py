"""Each grader at the real number of rows, beside pandas reading the same two files; cold start is in `grading`.

The rows are those of a scored submission of the conformance vectors and of its answers, repeated under new ids.
Cells other than ids repeat and are as short as in the vectors: graders of masks, boxes and long texts meet less
here than in earnest, and pandas reads repeated words faster.
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

from benchmarks.measuring import Comparison
from competitions import registry
from competitions.judging import judge
from competitions.kit import tables
from competitions.model import Competition
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Case, Vector

_ROUNDS = 3
_FLOOR_SECONDS = 0.05  # nobody notices less
_TIMES = 2.0
_ROWS = 5_000  # where nothing is said below
_REAL_ROWS = {
    "AI4Code": 20_000,
    "alaska2-image-steganalysis": 20_000,
    "billion-word-imputation": 303_000,
    "bms-molecular-translation": 484_837,
    "cdiscount-image-classification-challenge": 706_990,
    "champs-scalar-coupling": 465_000,
    "denoising-dirty-documents": 5_800_000,
    "facebook-recruiting-iii-keyword-extraction": 603_420,
    "h-and-m-personalized-fashion-recommendations": 1_371_980,
    "herbarium-2020-fgvc7": 206_000,
    "herbarium-2021-fgvc8": 451_000,
    "herbarium-2022-fgvc9": 168_000,
    "histopathologic-cancer-detection": 45_000,
    "icecube-neutrinos-in-deep-ice": 1_300_000,
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
    "text-normalization-challenge-english-language": 992_000,
    "text-normalization-challenge-russian-language": 1_059_000,
    "uw-madison-gi-tract-image-segmentation": 24_000,
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
_SUBMITTED_FOR_EACH_ANSWER = {
    "h-and-m-personalized-fashion-recommendations": 18
}  # most customers bought nothing


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure every competition whose vectors hold a scored submission."""
    for competition_id in registry.all_ids():
        competition = registry.get(competition_id)
        case = _largest(Vector(VECTORS / competition_id))
        with tempfile.TemporaryDirectory() as folder:
            yield _measure(competition, case, Path(folder), min(rounds, _ROUNDS))


def _largest(vector: Vector) -> Case:
    scored = [case for case in vector.cases() if case.expect == "score" and not case.unstable]
    return max(scored, key=lambda case: (case.answers is None, case.submission.stat().st_size))


def _measure(competition: Competition, case: Case, folder: Path, rounds: int) -> Comparison:
    source = prepared(competition.id)
    dataset, submission = folder / "prepared", folder / "submission.csv"
    shutil.copytree(source, dataset)
    times = _enlarge(
        competition.id,
        case.answers or source / competition.answers,
        case.submission,
        dataset / competition.answers,
        submission,
    )
    # a submission may be some times as large as the sample
    shutil.copyfile(submission, dataset / competition.sample_submission)
    parameters = Vector(VECTORS / competition.id).parameters

    def grade() -> None:
        found = judge(competition, submission, prepared=dataset, parameters=parameters)
        if found.outcome != "scored":
            raise RuntimeError(f"{competition.id}: {found.outcome} {found.message} {found.detail}")

    def read() -> None:
        for path in (dataset / competition.answers, submission):
            pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_csv(path)

    taken = [(_seconds(grade), _seconds(read)) for _ in range(rounds + 1)][1:]
    seconds, reference = (min(column) for column in zip(*taken, strict=True))
    return Comparison(
        "graders",
        competition.id[:46],
        seconds,
        f"reading {times:,} times the vector's rows",
        reference,
        max(_TIMES, _FLOOR_SECONDS / reference),
    )


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
    fewer = _SUBMITTED_FOR_EACH_ANSWER.get(competition_id, 1)
    for table, target, count in ((truth, answers, -(-times // fewer)), (guesses, submission, times)):
        copies = _repeated(table, keys, count, largest)
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
