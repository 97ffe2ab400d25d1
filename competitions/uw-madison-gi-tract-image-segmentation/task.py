"""UW-Madison GI tract: MRI scans split by patient and day, scored by Dice and Hausdorff distance of organs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import ndimage

from mlebench_console.competitions.kit import checks, placing, splits
from mlebench_console.competitions.kit.formats import run_lengths
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawPath
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation, PublicData
from mlebench_console.foundation.problems import DataProblem

KEYS = ["id", "class"]
DAYS_KEPT = 4  # the first days of a train patient; later ones are test
DICE_SHARE, DISTANCE_SHARE = 0.4, 0.6
MOST_TIMES = 10  # a volume predicted more than so many times too large scores like none

Positions = npt.NDArray[np.integer]
Numbers = npt.NDArray[np.float64]
Solid = npt.NDArray[np.bool_]


def prepare(job: Preparation) -> None:
    """Hold out whole patients, and the later days of those that were scanned often."""
    table = labelled_table.read(job, "train.csv", needs=[*KEYS, "segmentation"])
    parts = table["id"].str.split("_", expand=True)
    case, day = parts[0], parts[0] + "_" + parts[1]
    cases = case.unique()
    split = splits.by_row(job, len(cases))
    test_cases = set(cases[split.test])
    number = pd.to_numeric(parts[1].str.removeprefix("day"), errors="coerce")
    if number.isna().any():
        wrong = table["id"][number.isna()].iloc[0]
        raise DataProblem(f"train.csv: id {wrong!r} is not of the form case7_day0_slice_0001")
    days = pd.DataFrame({"case": case, "day": day, "number": number})
    days = days.drop_duplicates("day").sort_values("number", kind="stable")
    late = days[days.groupby("case").cumcount() >= DAYS_KEPT]
    moved = set(late.loc[~late["case"].isin(test_cases), "day"])
    in_test = case.isin(test_cases) | day.isin(moved)
    train, test = table[~in_test], table[in_test]
    width, height = _sizes(job.source("train"), test["id"])
    answers = test.rename(columns={"segmentation": "predicted"})[[*KEYS, "predicted"]]
    labelled_table.write_parts(
        job,
        train[[*KEYS, "segmentation"]],
        test[KEYS],
        sample=test[KEYS].assign(predicted="1 1 5 2"),
        answers=answers.assign(image_width=width, image_height=height),
    )
    _place_scans(job, {name: "test" if name in test_cases else "train" for name in cases}, moved)


def _sizes(scans: RawPath, ids: pd.Series) -> tuple[list[float], list[float]]:
    """Width and height of slices, which stand in the names of their files."""
    found: dict[str, list[RawPath]] = {}
    for day in ids.str.rpartition("_slice_")[0].unique():
        for path in (scans / day.partition("_")[0] / day / "scans").glob("slice_*.png"):
            found.setdefault(f"{day}_slice_{path.stem.split('_')[1]}", []).append(path)
    sizes = []
    for id_ in ids:
        paths = found.get(id_, [])
        if len(paths) != 1:
            raise DataProblem(f"{scans}: slice {id_} has {len(paths)} image files, expected one")
        sizes.append(paths[0].stem.split("_")[2:4])
    return [float(size[0]) for size in sizes], [float(size[1]) for size in sizes]


def _place_scans(job: Preparation, sides: dict[str, str], moved: set[str]) -> None:
    folders: list[tuple[RawPath, Path]] = []
    files: list[tuple[RawPath, Path]] = []
    for case, side in sides.items():
        (job.public / side / case).mkdir(parents=True)
        for path in sorted(job.source(f"train/{case}").iterdir()):
            target = job.public / ("test" if path.name in moved else side) / case / path.name
            (folders if path.is_dir() else files).append((path, target))
    placing.place_trees(job, folders, "scans")
    placing.place(job, files, "files beside scans")


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the slices to predict with their sizes, and empty masks."""
    rows = data.sample()[KEYS]
    width, height = _sizes(data.public / "test", rows["id"])
    return rows.assign(predicted="", image_width=width, image_height=height)


def grade(case: Grading) -> np.float64:
    """Return two fifths mean Dice, three fifths nearness of volumes.

    Edition v1 pairs rows, and days, by position alone; and merges the organs of a day to one volume.
    """
    checks.columns_present(case.submission, [*KEYS, "predicted"])
    if not len(case.submission):
        raise InvalidSubmission("The submission has a header and no rows.")
    height, width = (
        case.answers[f"image_{side}"].to_numpy().astype(np.int64) for side in ("height", "width")
    )
    rows = _aligned(case) if case.corrected else np.arange(min(len(case.submission), len(case.answers)))
    with checks.reading_answers():
        truth = run_lengths.parse(
            case.answers["predicted"], height * width, column="predicted", strict=False, missing_ok=True
        )
    predicted = run_lengths.parse(
        case.submission["predicted"].iloc[rows],
        (height * width)[: len(rows)],
        column="predicted",
        strict=False,
        missing_ok=True,
        row_numbers=rows,
    )
    true_scans = _scans(case.answers["id"], height, width)
    if case.corrected:
        organs = pd.factorize(case.answers["class"])[0]
        scans = true_scans = true_scans.divided(organs)
    else:
        ids = case.submission["id"].iloc[rows]
        scans = _scans(ids, height[: len(rows)], width[: len(rows)])
    distance = _distances(truth, true_scans, predicted, scans, by_rows=case.corrected)
    dice = run_lengths.dice(truth.head(len(rows)), predicted)
    return np.float64(DICE_SHARE * _mean(dice) + DISTANCE_SHARE * (1 - _mean(distance)))


def _mean(values: Numbers) -> float:
    """Return the mean of the values that are not NaN; NaN without any."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _aligned(case: Grading) -> npt.NDArray[np.intp]:
    both = "id and class"
    keyed = [
        pd.DataFrame({both: table["id"].astype(str) + " " + table["class"].astype(str)})
        for table in (case.submission, case.answers)
    ]
    return checks.matched_rows(keyed[0], keyed[1], both)


@dataclass(frozen=True)
class Scans:
    """The positions of rows' slices in volumes.

    Attributes:
        volume: per row its volume.
        layer: per row the index of its slice in the volume.
        shape: per volume its number of layers, height and width.
    """

    volume: Positions
    layer: Positions
    shape: Positions

    def divided(self, part: Positions) -> "Scans":
        """Return a volume of its own for each part."""
        parts = int(part.max(initial=-1)) + 1
        return Scans(self.volume * parts + part, self.layer, np.repeat(self.shape, parts, axis=0))


def _scans(ids: pd.Series, height: Positions, width: Positions) -> Scans:
    """Return one volume per day, numbered in the order of the ids' text; slices of a day in that order too."""
    texts = ids.tolist()
    strange = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if strange is not None:
        raise checks.InvalidCell(
            strange, "id", texts[strange], "is no id", "one such as case7_day0_slice_0001"
        )
    slice_, names = pd.factorize(np.array(texts, dtype=object), sort=True)
    days = pd.factorize(np.array([name.partition("_slice_")[0] for name in names], dtype=object))[0]
    layers = pd.Series(days).groupby(days).cumcount().to_numpy()
    volume = days[slice_]
    firsts = np.unique(volume, return_index=True)[1]
    differs = (height != height[firsts][volume]) | (width != width[firsts][volume])
    if differs.any():
        raise InvalidSubmission(
            f"Row {np.argmax(differs) + 1}: its picture has another size than that of the day's first row; "
            "rows must come in the order of test.csv."
        )
    shape = np.column_stack([np.bincount(days), height[firsts], width[firsts]])
    return Scans(volume, layers[slice_], shape)


def _distances(
    truth: run_lengths.Masks, true_scans: Scans, predicted: run_lengths.Masks, scans: Scans, *, by_rows: bool
) -> Numbers:
    """Return per volume the Hausdorff distance relative to the true volume's diagonal; NaN where both are empty."""
    distances = []
    pairs = zip(_solids(truth, true_scans, by_rows), _solids(predicted, scans, by_rows), strict=False)
    for true, claimed in pairs:
        true_size, size = np.count_nonzero(true), np.count_nonzero(claimed)
        if not true_size and not size:
            distances.append(float("nan"))
        elif 0 < size <= MOST_TIMES * true_size:
            distances.append(hausdorff(true, claimed, 1 / np.array(true.shape)) / np.sqrt(3))
        else:
            distances.append(1.0)
    return np.array(distances)


def _solids(masks: run_lengths.Masks, scans: Scans, by_rows: bool) -> Iterator[Solid]:
    """Yield each volume with its masks painted in, layer by layer; their pixels are counted along rows or columns."""
    volume, layer = scans.volume[masks.row], scans.layer[masks.row]
    order = np.argsort(volume, kind="stable")
    edges = np.searchsorted(volume[order], np.arange(1, len(scans.shape)))
    for (layers, height, width), runs in zip(scans.shape.tolist(), np.split(order, edges), strict=True):
        solid = np.zeros((layers, height * width), dtype=bool)
        ends = (layer[runs].tolist(), masks.start[runs].tolist(), masks.stop[runs].tolist())
        for place, start, stop in zip(*ends, strict=True):
            solid[place, start:stop] = True
        yield solid.reshape((layers, height, width) if by_rows else (layers, width, height))


def hausdorff(one: Solid, other: Solid, scale: Numbers) -> float:
    """Return the largest distance from a voxel of either solid to the nearest voxel of the other.

    Neither is empty, and they need not be parts of equally large volumes.

    Args:
        one: for each voxel whether it belongs to the solid.
        other: the same of the other solid.
        scale: how far neighbouring voxels are apart along each axis.
    """
    shape = np.maximum(one.shape, other.shape)
    one, other = (np.pad(side, [(0, gap) for gap in shape - side.shape]) for side in (one, other))
    (box,) = ndimage.find_objects((one | other).view(np.int8))
    return max(_directed(one[box], other[box], scale), _directed(other[box], one[box], scale))


def _directed(near: Solid, far: Solid, scale: Numbers) -> float:
    nearest = ndimage.distance_transform_edt(~far, scale, return_distances=False, return_indices=True)
    beyond = near & ~far
    apart = (nearest[:, beyond] - np.nonzero(beyond)) * scale[:, None]
    return float(np.sqrt((apart**2).sum(axis=0).max(initial=0)))
