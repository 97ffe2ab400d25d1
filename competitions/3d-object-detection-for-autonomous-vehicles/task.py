"""Lyft 3D objects: linked tables of recordings, whole logs held out, scored by AP over ten IoU thresholds."""

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import metrics, placing, splits, tables
from mlebench_console.competitions.kit.checks import detections
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.metrics import geometry, matching
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation
from mlebench_console.foundation.problems import DataProblem

Records = list[dict[str, Any]]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

COPIED = ["attribute.json", "category.json", "sensor.json", "visibility.json"]
FOLDERS = {"jpeg": "images", "bin": "lidar"}
MAP = "map_raster_palo_alto.png"
COLUMN = "PredictionString"
TOKENS = (
    "confidence",
    *("center_x", "center_y", "center_z", "width", "length", "height", "yaw"),
    "class_name",
)
FORM = detections.ObjectSyntax(TOKENS, name=8, single_blanks=True, missing_ok=True, blank_ok=True)
THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
SLACK = 1e-8  # the rounding error of right angles that MLE-bench tolerates in a box's corners


def prepare(job: Preparation) -> None:
    """Hold out logs with all their records; every table keeps the order of its file."""
    labels = labelled_table.read(job, "train.csv", needs=["Id", COLUMN])
    raw = {name: _records(job, name) for name in ("log", "sample", "scene", "sample_data", "map")}
    raw |= {name: _records(job, name) for name in ("calibrated_sensor", "ego_pose")}
    logs = [log["token"] for log in raw["log"]]
    if len(set(logs)) < len(logs) or {sample["token"] for sample in raw["sample"]} != set(labels["Id"]):
        raise DataProblem(f"{job.raw}: log.json, sample.json and train.csv do not belong together")
    for name in COPIED:  # copied unchanged, but checked here
        json_files.read_records(job.source(f"train_data/{name}"))
    split = splits.by_row(job, len(logs))
    sides = {"train": [logs[i] for i in split.train], "test": [logs[i] for i in split.test]}
    for side, tokens in sides.items():
        samples = _of(raw["sample"], "scene_token", tokens)
        side_tokens = {sample["token"] for sample in samples}
        data = _of(raw["sample_data"], "sample_token", side_tokens)
        # MLE-bench writes the test tokens into both maps
        map_tokens = tokens if job.corrected else sides["test"]
        made = {
            "log": _of(raw["log"], "token", tokens),
            "sample": _without_counts(samples) if job.corrected and side == "test" else samples,
            "scene": _of(raw["scene"], "log_token", tokens),
            "sample_data": data,
            "calibrated_sensor": _used(raw, "calibrated_sensor", data, once=True),
            "ego_pose": _used(raw, "ego_pose", data, once=False),
            "map": [raw["map"][0] | {"log_tokens": map_tokens}],
        }
        if side == "train":
            annotations = _records(job, "sample_annotation")
            made["sample_annotation"] = _of(annotations, "sample_token", side_tokens)
            instances = {annotation["instance_token"] for annotation in made["sample_annotation"]}
            made["instance"] = _of(_records(job, "instance"), "token", instances)
        for name, table in made.items():
            json_files.write_json(job.public / f"{side}_data" / f"{name}.json", table)
        _place_files(job, side, data)
        rows = labels[labels["Id"].isin(side_tokens)]
        if side == "train":
            tables.write_csv(rows, job.public / "train.csv")
        else:
            labelled_table.write_answers(job, _with_confidence(rows), rows[["Id"]].assign(**{COLUMN: ""}))


def _records(job: Preparation, name: str) -> Records:
    return json_files.read_records(job.source(f"train_data/{name}.json"))


def _of(table: Records, key: str, tokens: Collection[str]) -> Records:
    chosen = frozenset(tokens)
    return [record for record in table if record[key] in chosen]


def _used(raw: dict[str, Records], name: str, data: Records, *, once: bool) -> Records:
    """Return the records that sample data refer to, in the order of use."""
    by_token = {record["token"]: record for record in raw[name]}
    tokens = [record[f"{name}_token"] for record in data]
    missing = next((token for token in tokens if token not in by_token), None)
    if missing is not None:
        raise DataProblem(
            f"{name}.json is incomplete", f"it lacks {missing}, which sample_data.json refers to"
        )
    return [by_token[token] for token in (dict.fromkeys(tokens) if once else tokens)]


def _without_counts(samples: Records) -> Records:
    """Return samples without the lists of their annotations, which reveal the number of objects."""
    return [{key: value for key, value in sample.items() if key != "anns"} for sample in samples]


def _place_files(job: Preparation, side: str, data: Records) -> None:
    files = {
        (FOLDERS[record["fileformat"]], PurePosixPath(record["filename"]).name): None
        for record in data
        if record["fileformat"] in FOLDERS
    }
    pairs = [(f"train_{folder}/{name}", f"{side}_{folder}/{name}") for folder, name in files]
    pairs += [(f"train_data/{name}", f"{side}_data/{name}") for name in COPIED]
    pairs.append((f"train_maps/{MAP}", f"{side}_maps/{MAP}"))
    placing.place(job, [(job.raw / old, job.public / new) for old, new in pairs], f"{side} files")


def _with_confidence(rows: pd.DataFrame) -> pd.DataFrame:
    texts = []
    for sample, text in zip(rows["Id"], rows[COLUMN].fillna(""), strict=True):
        tokens = text.split()
        if len(tokens) % 8:
            raise DataProblem(
                f"train.csv: the boxes of {sample} cannot be read", "they do not have 8 tokens each"
            )
        texts.append(" ".join(" ".join(["1.0", *tokens[i : i + 8]]) for i in range(0, len(tokens), 8)))
    return rows.assign(**{COLUMN: texts})


def grade(case: Grading) -> np.float64:
    """Return the mean over samples and IoU thresholds of the classes' mean average precision."""
    predicted, truth = detections.predicted_and_true_masks(case, "Id", COLUMN, FORM)
    confidence, boxes, true_boxes = predicted.numbers[:, 0], predicted.numbers[:, 1:], truth.numbers[:, 1:]
    group, true_group = matching.codes((predicted.row, predicted.names), (truth.row, truth.names))
    judged = np.isin(group, true_group)
    wrong = ~_are_boxes(boxes) & (judged | case.corrected | case.form_only)
    if wrong.any():
        raise predicted.refused(
            np.argmax(wrong),
            "holds a box with a size not above 0, or a number that is not finite or too large",
        )
    kept = np.flatnonzero(judged)
    kept = kept[matching.ranked(group[kept], confidence[kept])]
    positives = np.bincount(
        true_group, minlength=int(max(group.max(initial=-1), true_group.max(initial=-1))) + 1
    )
    precision = _average_precision(boxes[kept], group[kept], true_boxes, true_group, positives)
    sample = np.zeros(len(positives), dtype=np.intp)
    sample[group], sample[true_group] = predicted.row, truth.row
    # MLE-bench ignores predictions of classes that the sample does not have
    asked = np.unique(np.concatenate([true_group, group]) if case.corrected else true_group)
    classes = np.bincount(sample[asked], minlength=len(case.answers))
    sums = np.bincount(sample[asked], weights=precision[asked], minlength=len(case.answers))
    if not case.corrected and (classes == 0).any():
        return np.float64("nan")
    return np.float64((sums / np.maximum(classes, 1)).mean())


def _are_boxes(boxes: Numbers) -> Mask:
    """Return which boxes have sizes above 0, and right angles in double precision, which rounding bends far away."""
    x, y, z, width, length, height, yaw = boxes.T
    with np.errstate(all="ignore"):
        along = np.stack([np.cos(yaw), np.sin(yaw)]) * (length / 2)
        across = np.stack([np.sin(yaw), -np.cos(yaw)]) * (width / 2)
        centre = np.stack([x, y])
        corners = [centre + along + across, centre + along - across]
        corners += [centre - along - across, centre - along + across]
        fine = (width > 0) & (length > 0) & (height > 0) & ~np.isnan(z)
        for place in range(4):
            before, here, after = corners[place - 1], corners[place], corners[(place + 1) % 4]
            fine &= np.abs(((before - here) * (after - here)).sum(axis=0)) <= SLACK
    return np.asarray(fine, dtype=bool)


def _average_precision(
    boxes: Numbers,
    group: npt.NDArray[np.intp],
    true_boxes: Numbers,
    true_group: npt.NDArray[np.intp],
    positives: Any,
) -> Numbers:
    """Return each group's mean over thresholds; a box is matched only with the true box that it overlaps most."""
    left, right, iou = matching.overlapping(
        group,
        true_group,
        lambda left, right: geometry.cuboid_iou(boxes, true_boxes, left, right, above=THRESHOLDS[0]),
        above=THRESHOLDS[0],
    )
    best = np.flatnonzero(np.diff(left, prepend=-1))
    best = best[np.argsort(right[best], kind="stable")]
    total = np.zeros(len(positives))
    for threshold in THRESHOLDS:
        over = best[iou[best] > threshold]
        hits = np.zeros(len(group), dtype=bool)
        hits[left[over[np.flatnonzero(np.diff(right[over], prepend=-1))]]] = True
        total += metrics.envelope_average_precision(hits, group, positives)
    return total / len(THRESHOLDS)
