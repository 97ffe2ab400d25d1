"""Tables in zips, of prepared folders and of raw data."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd


def zipped(folder: Path, name: str, separator: str = ",") -> pd.DataFrame:
    """A table in a zip of the public folder, verbatim."""
    with zipfile.ZipFile(folder / "public" / f"{name}.zip") as archive, archive.open(name) as stream:
        return pd.read_csv(stream, sep=separator, dtype=str, keep_default_na=False)


def rewrite(
    path: Path, member: str, change: Callable[[pd.DataFrame], pd.DataFrame], separator: str = ","
) -> None:
    """Make a zip of one table anew with the table changed."""
    with zipfile.ZipFile(path) as archive:
        rows = pd.read_csv(io.BytesIO(archive.read(member)), sep=separator, dtype=str, keep_default_na=False)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, change(rows).to_csv(sep=separator, index=False))
