"""Turning tables and pictures into matrices that a model can take."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .problem import Problem
from .workplace import CannotSolveError

Matrix = npt.NDArray[Any]

MAX_CATEGORIES = 40
PICTURE_SIDE = 32
_PICTURE_FOLDERS = ("{part}.zip", "{part}", "{part}_images", "images")


def table_matrices(problem: Problem) -> tuple[Matrix, Matrix]:
    """Numbers for the rows of train and test; the two are looked at together, labels apart."""
    both = pd.concat([problem.train[list(problem.features)], problem.test[list(problem.features)]])
    parts: list[pd.DataFrame] = []
    for name in problem.features:
        parts += _columns(both[name].reset_index(drop=True), name)
    matrix = np.hstack([part.to_numpy(np.float64) for part in parts])
    return matrix[: len(problem.train)], matrix[len(problem.train) :]


def _columns(column: pd.Series, name: str) -> list[pd.DataFrame]:
    if pd.api.types.is_bool_dtype(column):
        return [column.astype(float).to_frame()]
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.astype(float)
        filled = numbers.fillna(numbers.median())
        parts = [filled.to_frame()]
        if numbers.isna().any():
            parts.append(numbers.isna().astype(float).to_frame())
        if filled.min() >= 0 and filled.max() > 50 * max(filled.median(), 1):
            parts.append(filled.map(np.log1p).to_frame())
        if filled.nunique() <= 12:
            parts.append(pd.get_dummies(filled.map(str), dtype=float))
        return parts
    text = column.map(str)
    if text.nunique() <= MAX_CATEGORIES:
        return [pd.get_dummies(text, dtype=float)]
    return _pieces(text, name)


def _pieces(text: pd.Series, name: str) -> list[pd.DataFrame]:
    """Compound codes such as `B/12/P` or `0042_01`: their pieces are columns of their own."""
    separator = next((mark for mark in "/_" if text.str.contains(mark, regex=False).mean() > 0.5), None)
    if separator is None:
        return []
    parts: list[pd.DataFrame] = []
    for place, piece in text.str.split(separator, expand=True).items():
        numbers = pd.to_numeric(piece, errors="coerce")
        if numbers.notna().mean() > 0.5:
            parts.append(numbers.fillna(numbers.median()).to_frame())
        elif piece.nunique() <= MAX_CATEGORIES:
            parts.append(pd.get_dummies(piece.map(str), prefix=f"{name}{place}", dtype=float))
    return parts


def picture_matrices(problem: Problem, data: Path) -> tuple[Matrix, Matrix]:
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
        pixels = _decode(content)
        rows, columns = (np.arange(PICTURE_SIDE) * length // PICTURE_SIDE for length in pixels.shape[:2])
        pictures[place] = pixels[rows][:, columns] / 255
    return pictures


def _decode(content: bytes) -> Matrix:
    """Pixels of a picture; plain bitmaps need no library."""
    if content[:2] == b"BM" and content[28:30] == b"\x18\0" and content[30:34] == b"\0\0\0\0":
        begin, width, height = (int.from_bytes(content[at : at + 4], "little") for at in (10, 18, 22))
        stride = (3 * width + 3) // 4 * 4
        rows = np.frombuffer(content, np.uint8, stride * height, begin).reshape(height, stride)
        return rows[::-1, : 3 * width].reshape(height, width, 3)[:, :, ::-1]
    try:
        from PIL import Image
    except ImportError as error:
        raise CannotSolveError("the pictures are compressed and Pillow is not installed") from error
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


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
