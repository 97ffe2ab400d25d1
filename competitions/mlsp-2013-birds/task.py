"""MLSP 2013 Birds: recordings and features computed from them, renumbered, scored by pooled ROC AUC."""

import io
from pathlib import Path

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import archives, tables
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.raw import read_as
from mlebench_console.competitions.task import Grading, Preparation

ARCHIVE = "mlsp_contest_dataset.zip"
FOLDS = "essential_data/CVfolds_2.txt"
NAMES = "essential_data/rec_id2filename.txt"
LABELS = "essential_data/rec_labels_test_hidden.txt"
FEATURES = [
    f"supplemental_data/{name}.txt"
    for name in ("histogram_of_segments", "segment_features", "segment_rectangles")
]
KEPT = [NAMES, LABELS, *FEATURES]
WHOLE = ["essential_data/species_list.txt"]
WHOLE += ["supplemental_data/segment_clusters.bmp", "supplemental_data/segment_mosaic.bmp"]
PICTURES = ["spectrograms", "filtered_spectrograms", "supervised_segmentation"]
EXAMPLES = "supplemental_data/segmentation_examples"
SPECIES = 19

Lines = list[tuple[int, str]]


def prepare(job: Preparation) -> None:
    """Keep Kaggle's train recordings under new numbers, and hold some of them out."""
    folds = _lines(job, FOLDS)
    numbers = {old: new for new, old in enumerate(old for old, fold in folds if int(fold) == 0)}
    test = _held_out(job, len(numbers))
    kept = {
        name: [(numbers[old], rest) for old, rest in _lines(job, name) if old in numbers] for name in KEPT
    }
    _write(job, FOLDS, "rec_id,fold", [(number, str(int(number in test))) for number in numbers.values()])
    _write(job, NAMES, "rec_id,filename", kept[NAMES])
    hidden = [(number, "?" if number in test else labels) for number, labels in kept[LABELS]]
    _write(job, LABELS, "rec_id,[labels]", hidden)
    for name in FEATURES:
        _write(job, name, "rec_id,[histogram of segment features]", kept[name])
    answers = [(number, labels) for number, labels in kept[LABELS] if number in test]
    tables.write_csv(_one_hot(answers), job.private / "answers.csv")
    tables.write_csv(
        _one_hot([(number, "") for number in sorted(test)]), job.public / "sample_submission.csv"
    )
    _extract(job, kept[NAMES], test)


def _held_out(job: Preparation, recordings: int) -> set[int]:
    count = round(job.number("test_share") * recordings)
    expected = job.parameters["expected_test_recordings"]
    if expected is not None and count != expected:
        raise job.unexpected(
            FOLDS, f"its {recordings} train recordings give {count} for test, expected {expected}"
        )
    return set(np.random.RandomState(job.integer("seed")).permutation(recordings)[:count].tolist())


def _lines(job: Preparation, name: str) -> Lines:
    """Return for each line but the first its leading number and the text after the comma."""
    (content,) = archives.read_members(job.source(ARCHIVE), [f"{Path(ARCHIVE).stem}/{name}"])
    with read_as("numbered lines", f"{job.source(ARCHIVE)}: {name}", ValueError):
        lines = io.TextIOWrapper(io.BytesIO(content), "utf-8").read().split("\n")[1:]
        rows = [line.partition(",") for line in lines if line.strip()]
        return [(int(number), rest) for number, _, rest in rows]


def _write(job: Preparation, name: str, header: str, lines: Lines) -> None:
    path = job.public / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{number},{rest}" if rest else str(number) for number, rest in lines]
    path.write_text("".join(f"{row}\n" for row in [header, *rows]), encoding="utf-8", newline="\n")


def _one_hot(lines: Lines) -> pd.DataFrame:
    """Return a row for each recording and species, with 1 if the species is listed."""
    listed = [{int(species) for species in labels.split(",") if species} for _, labels in lines]
    cells = [
        (number * 100 + species, int(species in heard))
        for (number, _), heard in zip(lines, listed, strict=True)
        for species in range(SPECIES)
    ]
    return pd.DataFrame(cells, columns=["Id", "Probability"])


def _extract(job: Preparation, names: Lines, test: set[int]) -> None:
    """Extract the kept recordings' files; edition corrected omits hand-made segmentations of test recordings."""
    base = Path(ARCHIVE).stem
    present = set(archives.files_in(job.source(ARCHIVE)))
    files = [*WHOLE]
    for number, name in names:
        files.append(f"essential_data/src_wavs/{name}.wav")
        files += [f"supplemental_data/{folder}/{name}.bmp" for folder in PICTURES]
        example = f"{EXAMPLES}/{name}.bmp"
        if f"{base}/{example}" in present and not (job.corrected and number in test):
            files.append(example)
    archives.extract_as(job, job.source(ARCHIVE), {f"{base}/{name}": job.public / name for name in files})


def grade(case: Grading) -> float:
    """Return the area under the ROC curve over all pairs of recording and species."""
    return graders.auc(case, id_column="Id", target="Probability")
