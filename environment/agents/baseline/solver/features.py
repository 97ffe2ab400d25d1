"""Convert tables and images to feature matrices for models."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from PIL import Image

from .problem import LearningTask
from .workplace import CannotSolveError

Matrix = npt.NDArray[Any]

MAX_CATEGORIES = 40
PICTURE_SIDE = 32
_PICTURE_FOLDERS = ("{part}.zip", "{part}", "{part}_images", "images")


def table_matrices(problem: LearningTask) -> tuple[Matrix, Matrix]:
    """Numbers for the rows of train and test; the two are looked at together, labels apart."""
    # Imported late, so that the constant submission does not wait for it.
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    columns = list(problem.features)
    both = pd.concat([problem.train[columns], problem.test[columns]], ignore_index=True)
    _add_pieces(both)
    numbers = both.select_dtypes(["number", "bool"]).astype(float)
    both[numbers.columns] = numbers
    skewed = numbers.columns[(numbers.min() >= 0) & (numbers.max() > 50 * numbers.median().clip(lower=1))]
    few = [name for name in both if both[name].nunique() <= (12 if name in numbers else MAX_CATEGORIES)]
    to_numbers = make_column_transformer(
        (SimpleImputer(strategy="median", add_indicator=True), list(numbers)),
        (make_pipeline(SimpleImputer(strategy="median"), FunctionTransformer(np.log1p)), list(skewed)),
        (OneHotEncoder(sparse_output=False), few),
    )
    matrix = to_numbers.fit_transform(both)
    return matrix[: len(problem.train)], matrix[len(problem.train) :]


def _add_pieces(table: pd.DataFrame) -> None:
    """Split compound codes such as `B/12/P` or `0042_01` into separate columns."""
    for name in list(table.select_dtypes(exclude=["number", "bool"])):
        text = table[name].map(str)
        separator = next((mark for mark in "/_" if text.str.contains(mark, regex=False).mean() > 0.5), None)
        if separator is not None and text.nunique() > MAX_CATEGORIES:
            for place, piece in text.str.split(separator, expand=True).items():
                numbers = pd.to_numeric(piece, errors="coerce")
                table[f"{name}{place}"] = numbers if numbers.notna().mean() > 0.5 else piece


def picture_matrices(problem: LearningTask, data: Path) -> tuple[Matrix, Matrix]:
    """Colours and edges of the pictures that train and test name in their first column."""
    key = problem.sample.columns[0]
    return (
        _describe(_pictures(data, "train", problem.train[key].map(str))),
        _describe(_pictures(data, "test", problem.test[key].map(str))),
    )


def _pictures(data: Path, part: str, names: pd.Series) -> Matrix:
    for pattern in _PICTURE_FOLDERS:
        place = data / pattern.format(part=part)
        if place.suffix == ".zip" and place.is_file():
            with zipfile.ZipFile(place) as archive:
                members = {Path(member).name: member for member in archive.namelist()}
                return _stack([archive.read(_known(members, name, place)) for name in names])
        if place.is_dir():
            files = {path.name: str(path) for path in place.iterdir()}
            return _stack([Path(_known(files, name, place)).read_bytes() for name in names])
    raise CannotSolveError(f"there are neither tables nor pictures for {part}")


def _known(names: dict[str, str], name: str, place: Path) -> str:
    for candidate in (name, f"{name}.jpg", f"{name}.png"):
        if candidate in names:
            return names[candidate]
    raise CannotSolveError(f"{place.name} has no picture {name}")


def _stack(contents: list[bytes]) -> Matrix:
    pictures = np.empty((len(contents), PICTURE_SIDE, PICTURE_SIDE, 3), np.float32)
    for place, content in enumerate(contents):
        with Image.open(io.BytesIO(content)) as image:
            pictures[place] = np.asarray(image.convert("RGB").resize((PICTURE_SIDE, PICTURE_SIDE)))
    return pictures / 255


def _describe(pictures: Matrix) -> Matrix:
    """Block means and spreads of the colours, and how strong edges are in which direction."""
    blocks = pictures.reshape(len(pictures), 8, PICTURE_SIDE // 8, 8, PICTURE_SIDE // 8, 3)
    grey = pictures.mean(axis=3)
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(down, right)
    direction = np.floor((np.arctan2(down, right) % np.pi) / np.pi * 8).astype(int) % 8
    edges = [
        (strength * (direction == way))
        .reshape(len(pictures), 4, 8, 4, 8)
        .sum(axis=(2, 4))
        .reshape(len(pictures), -1)
        for way in range(8)
    ]
    whole = np.hstack([*(edge.sum(axis=1, keepdims=True) for edge in edges)])
    return np.hstack(
        [
            blocks.mean(axis=(2, 4)).reshape(len(pictures), -1),
            pictures.std(axis=(1, 2)),
            np.quantile(grey.reshape(len(pictures), -1), [0.02, 0.1, 0.5, 0.9], axis=1).T,
            *edges,
            np.sort(whole, axis=1),
        ]
    )
