"""MLE-bench's helpers for files, archives, names of runs and logging."""

from __future__ import annotations

import difflib
import importlib
import json
import logging
import os
import sys
import time
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench_console.foundation.clock import run_group_stamp

if TYPE_CHECKING:
    import pandas as pd
    from kaggle.api.kaggle_api_extended import KaggleApi

_COMPRESSED = (".zip", ".tar", ".gz", ".tgz", ".tar.gz", ".rar", ".7z")


def get_logger(name: str, level: int = logging.INFO, filename: Path | None = None) -> logging.Logger:
    """Return a logger that writes to standard error, or to a file, in MLE-bench's format."""
    form = "[%(asctime)s] [%(filename)s:%(lineno)d] %(message)s"
    logging.basicConfig(level=level, format=form, filename=filename)
    return logging.getLogger(name)


logger = get_logger(__name__)


def authenticate_kaggle_api() -> KaggleApi:
    """Return Kaggle's client, after a cheap call that needs its credentials.

    Raises:
        PermissionError: Kaggle does not accept them, or there are none.
    """
    try:
        from kaggle.api.kaggle_api_extended import KaggleApi

        api = KaggleApi()
        api.authenticate()
        api.competitions_list()
    except (Exception, SystemExit) as error:  # the client exits where there are no credentials
        logger.error(f"Authentication failed: {error}")
        raise PermissionError(
            "Kaggle authentication failed! Please ensure you have valid Kaggle API credentials configured."
        ) from error
    return api


def get_module_dir() -> Path:
    """Return the folder of this package."""
    return Path(__file__).parent.resolve()


def get_repo_dir() -> Path:
    """Return the folder that the package is in."""
    return get_module_dir().parent


def get_runs_dir() -> Path:
    """Return the folder of runs: MLEBENCH_RUNS_DIR, or else `runs` in the working directory."""
    return Path(os.environ.get("MLEBENCH_RUNS_DIR") or "runs").resolve()


def get_timestamp() -> str:
    """Return the current time in the format of the names of run groups and reports."""
    return run_group_stamp(time.time())


def generate_run_id(competition_id: str, agent_id: str, run_group: str | None = None) -> str:
    """Return a new name for a run; that of its group has the time and the agent already."""
    unique = str(uuid.uuid4())
    if run_group:
        return f"{competition_id}_{unique}"
    return f"{get_timestamp()}_{competition_id}_{agent_id}_{unique[:8]}"


def create_run_dir(
    competition_id: str | None = None, agent_id: str | None = None, run_group: str | None = None
) -> Path:
    """Create the folder of a new run, in that of its group if it has one."""
    known = competition_id and agent_id
    name = generate_run_id(str(competition_id), str(agent_id), run_group) if known else str(uuid.uuid4())
    folder = get_runs_dir() / (run_group or "") / name
    folder.mkdir(parents=True)
    return folder


def is_compressed(fpath: Path) -> bool:
    """Return whether a file's name is that of a compressed one."""
    return fpath.suffix in _COMPRESSED


def is_empty(dir: Path) -> bool:
    """Return whether a folder has no entry."""
    return not any(dir.iterdir())


def compress(src: Path, compressed: Path, exist_ok: bool = False) -> None:
    """Compress all files of a folder into a `.zip` or `.7z`.

    Raises:
        FileExistsError: the archive exists, and `exist_ok` is not set.
        NotImplementedError: the archive is of another kind.
    """
    if compressed.exists() and not exist_ok:
        raise FileExistsError(f"Compressed file `{compressed}` already exists.")
    files = [path for path in src.rglob("*") if path.is_file()]
    if compressed.suffix == ".zip":
        with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in files:
                zipped.write(path, path.relative_to(src))
    elif compressed.suffix == ".7z":
        import py7zr

        with py7zr.SevenZipFile(compressed, "w") as packed:
            for path in files:
                packed.write(path, str(path.relative_to(src)))
    else:
        raise NotImplementedError(f"Unsupported compression format: `{compressed.suffix}`.")


def extract(
    compressed: Path, dst: Path, recursive: bool = False, already_extracted: set[Path] | None = None
) -> None:
    """Extract a `.zip` or `.7z`, and with `recursive` also the archives that come out of it.

    Raises:
        NotImplementedError: the archive is of another kind.
    """
    if compressed.suffix == ".7z":
        import py7zr

        with py7zr.SevenZipFile(compressed) as packed:
            packed.extractall(dst)
    elif compressed.suffix == ".zip":
        with zipfile.ZipFile(compressed) as zipped:
            zipped.extractall(dst)
    else:
        raise NotImplementedError(f"Unsupported compression format: `{compressed.suffix}`.")
    done = already_extracted if already_extracted is not None else set()
    done.add(compressed)
    for path in sorted({path for path in dst.iterdir() if is_compressed(path)} - done) if recursive else ():
        extract(path, path.parent, recursive=True, already_extracted=done)


def in_ci() -> bool:
    """Return whether this runs in GitHub's CI."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def import_fn(fn_import_string: str) -> Callable[..., Any]:
    """Return the function of a name such as `package.module:function`."""
    module, _, name = fn_import_string.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def get_path_to_callable(callable: Callable[..., Any]) -> Path:
    """Return the file of a function's module, relative to the working directory.

    Raises:
        ValueError: the module has no file.
    """
    file = sys.modules[callable.__module__].__file__
    if file is None:
        raise ValueError(f"Module `{callable.__module__}` does not have a file path.")
    return Path(os.path.relpath(file))


def load_yaml(fpath: Path) -> dict[str, Any]:
    """Read a YAML file."""
    import yaml

    found: dict[str, Any] = yaml.safe_load(fpath.read_text())
    return found


def get_diff(d: dict[str, Any], other_d: dict[str, Any], fromfile: str = "d", tofile: str = "other_d") -> str:
    """Return the differences of two dictionaries as those of their YAML."""
    import yaml

    one, other = (yaml.dump(each, sort_keys=True).splitlines() for each in (d, other_d))
    return "\n".join(difflib.unified_diff(one, other, fromfile, tofile, lineterm=""))


def purple(str: str) -> str:
    """Return text in purple for a terminal."""
    return f"\033[1;35m{str}\033[0m"


def read_csv(*args: Any, **kwargs: Any) -> pd.DataFrame:
    """Read a table as MLE-bench does: numbers become the nearest double, an empty file an empty table."""
    import pandas as pd

    from mlebench_console.competitions.kit import tables

    source = args[0] if args else kwargs.get("filepath_or_buffer")
    if len(args) == 1 and not kwargs and isinstance(source, str | Path) and not is_compressed(Path(source)):
        return tables.read_csv(Path(source))
    try:
        table: pd.DataFrame = pd.read_csv(*args, **kwargs)
    except pd.errors.EmptyDataError:
        logger.warning(f"CSV file empty! {source}")
        return pd.DataFrame()
    return table


def read_jsonl(file_path: Path | str, skip_commented_out_lines: bool = False) -> list[dict[str, Any]]:
    """Read one object per line; lines that begin with `#` or `//`, and blank ones, can be skipped."""
    lines = Path(file_path).read_text(encoding="utf-8").splitlines()
    if skip_commented_out_lines:
        lines = [line for line in map(str.strip, lines) if line and not line.startswith(("#", "//"))]
    return [json.loads(line) for line in lines]


def load_answers(path_to_answers: Path) -> Any:
    """Read the answers of a competition.

    Raises:
        ValueError: they are neither CSV nor JSONL.
    """
    if path_to_answers.suffix == ".csv":
        return read_csv(path_to_answers)
    if path_to_answers.suffix == ".jsonl":
        return read_jsonl(path_to_answers)
    raise ValueError(f"Unsupported file format for answers: {path_to_answers}")
