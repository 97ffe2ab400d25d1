"""Write tables and zips of the demo reproducibly, with the same bytes each time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

_EPOCH = (1980, 1, 1, 0, 0, 0)


def csv_bytes(table: pd.DataFrame) -> bytes:
    """Return a table as Kaggle's CSV: comma, header, no index."""
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text.encode()


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table as a CSV file."""
    path.write_bytes(csv_bytes(table))


def write_zip(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip whose bytes depend only on its members."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=1)


def write_zipped_csv(path: Path, table: pd.DataFrame) -> None:
    """Write `name.csv.zip` or `name.zip` with `name.csv` in it."""
    write_zip(path, [(f"{path.name.removesuffix('.zip').removesuffix('.csv')}.csv", csv_bytes(table))])


def bitmap(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Encode height x width x 3 RGB as an uncompressed 24-bit BMP; the width must be a multiple of four.

    BMP, so that agents can decode the demo's images with numpy alone; the files keep Kaggle's names,
    because image readers go by content.
    """
    height, width, _ = pixels.shape
    body = pixels[::-1, :, ::-1].tobytes()
    numbers = [(54 + len(body), 4), (0, 4), (54, 4), (40, 4), (width, 4), (height, 4), (1, 2), (24, 2)]
    numbers += [(0, 4), (len(body), 4), (2835, 4), (2835, 4), (0, 4), (0, 4)]
    return b"BM" + b"".join(value.to_bytes(size, "little") for value, size in numbers) + body
