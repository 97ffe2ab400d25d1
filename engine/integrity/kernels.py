"""Public kernels on Kaggle: the list of known ones, their download, and the fingerprints of downloaded ones.

Their texts stay on the operator's disk and are never exported, because they belong to others.
"""

from __future__ import annotations

import hashlib
import json
import time
import tomllib
import zipfile
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from mlebench_console.engine.integrity import winnowing
from mlebench_console.engine.integrity.material import MOST_CODE_BYTES, code_of_notebook, decoded, read_lines
from mlebench_console.engine.integrity.winnowing import Hashes
from mlebench_console.engine.kaggle import NotAvailable, RulesNotAccepted
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.files import reading_untrusted, replacing, write_text
from mlebench_console.foundation.problems import DataProblem, reading, writing

if TYPE_CHECKING:
    import numpy.typing as npt

    from mlebench_console.engine.kaggle.client import PublishedKernel

FOLDER = ".kernels"
_FETCHED = "fetched.jsonl"
_FINGERPRINTS = "fingerprints.npz"
_PAUSE_SECONDS = 0.5


class KernelSource(Protocol):
    """A source of kernels, such as Kaggle's API."""

    def kernel(self, ref: str) -> PublishedKernel:
        """Return a kernel by `author/name`."""


class KernelOutcome(StrEnum):
    """How downloading a kernel ended; `private`: Kaggle answered 403, `gone`: 404."""

    OK = "ok"
    NOT_PYTHON = "not python"
    PRIVATE = "private"
    GONE = "gone"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class FetchedKernel:
    """The outcome of downloading a kernel.

    Attributes:
        sha256: of its Python code; empty where there is none.
        version: its version number on Kaggle.
    """

    ref: str
    outcome: KernelOutcome
    sha256: str = ""
    version: int = 0
    at: float = 0.0


@cache
def known_kernels() -> Mapping[str, Sequence[str]]:
    """Return the public kernels that this project knows, as `author/name`, by competition."""
    content = files("mlebench_console.engine.integrity").joinpath("kernels.toml").read_text(encoding="utf-8")
    return tomllib.loads(content)


def fetched(folder: Path, competition_id: str) -> dict[str, FetchedKernel]:
    """Read the download outcomes of a competition's kernels, by their names."""
    found: dict[str, FetchedKernel] = {}
    for line in read_lines(folder / competition_id / _FETCHED):
        with suppress(msgspec.ValidationError):  # a line of another version: fetched again
            one = msgspec.convert(line, FetchedKernel)
            found[one.ref] = one
    return found


def fetch(
    folder: Path,
    competition_ids: Collection[str],
    source: KernelSource,
    *,
    again: bool = False,
    pause: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> Generator[FetchedKernel, None, None]:
    """Download missing kernels, one after the other with a pause, and yield the outcome of each.

    It may be interrupted and continued: downloaded kernels are skipped, and unavailable ones too without `again`.

    Raises:
        Problem: Kaggle can't be reached, or does not accept the credentials.
    """
    for competition_id in competition_ids:
        home = folder / competition_id
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
        here = fetched(folder, competition_id)
        for ref in known_kernels().get(competition_id, ()):
            if ref in here and (here[ref].outcome is KernelOutcome.OK or not again):
                continue
            one = _fetch_one(home, ref, source, now())
            with writing(home):
                jsonlines.append(home / _FETCHED, [asdict(one)])
            yield one
            pause(_PAUSE_SECONDS)


def _fetch_one(home: Path, ref: str, source: KernelSource, at: float) -> FetchedKernel:
    try:
        kernel = source.kernel(ref)
    except RulesNotAccepted:
        return FetchedKernel(ref, KernelOutcome.PRIVATE, at=at)
    except NotAvailable:
        return FetchedKernel(ref, KernelOutcome.GONE, at=at)
    if kernel.language.lower() != "python":
        return FetchedKernel(ref, KernelOutcome.NOT_PYTHON, version=kernel.version, at=at)
    content = kernel.source.encode("utf-8", "replace")
    try:
        code = code_of_notebook(content, ref) if kernel.kind == "notebook" else decoded(content)
    except DataProblem:
        return FetchedKernel(ref, KernelOutcome.UNREADABLE, version=kernel.version, at=at)
    code = code[:MOST_CODE_BYTES]
    with writing(home):
        write_text(home / _file_name(ref), code, durable=False)
    digest = hashlib.sha256(code.encode()).hexdigest()
    return FetchedKernel(ref, KernelOutcome.OK, digest, kernel.version, at)


def _file_name(ref: str) -> str:
    return ref.replace("/", "__") + ".py"


def text_of(folder: Path, competition_id: str, ref: str) -> str:
    """Read a downloaded kernel.

    Raises:
        DataProblem: it was not downloaded, or can't be read.
    """
    with reading_untrusted(
        folder / competition_id / _file_name(ref), max_bytes=4 * MOST_CODE_BYTES
    ) as stream:
        return stream.read().decode("utf-8", "replace")


@dataclass(frozen=True, eq=False)
class KernelIndex:
    """The fingerprints of a competition's kernels.

    Attributes:
        refs: the kernels, by their numbers.
        hashes: all fingerprints, sorted, each once per kernel.
        owners: the number of the kernel of each fingerprint.
        digest: of the kernels that they were made from.
    """

    refs: tuple[str, ...]
    hashes: Hashes
    owners: npt.NDArray[np.int32]
    digest: str

    def without(self, dropped: Hashes) -> KernelIndex:
        """Return the index without fingerprints that many competitions share."""
        keep = ~winnowing.is_in(self.hashes, dropped)
        return KernelIndex(self.refs, self.hashes[keep], self.owners[keep], self.digest)

    def counts(self, chosen: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """Count the fingerprints of each kernel, or the chosen ones of them."""
        owners = self.owners if chosen is None else self.owners[chosen]
        return np.bincount(owners, minlength=len(self.refs))

    def of(self, number: int) -> Hashes:
        """Return the fingerprints of one kernel, sorted."""
        found: Hashes = self.hashes[self.owners == number]
        return found


def index_of(folder: Path, competition_id: str) -> KernelIndex:
    """Return the fingerprints of the downloaded kernels, from a file that is rewritten when the kernels change.

    Raises:
        DataProblem: a kernel, or the file of fingerprints, can't be read or written.
    """
    here = sorted(
        (one for one in fetched(folder, competition_id).values() if one.outcome is KernelOutcome.OK),
        key=lambda one: one.ref,
    )
    made_from = json.dumps([winnowing.VERSION, *([one.ref, one.sha256] for one in here)])
    digest = hashlib.sha256(made_from.encode()).hexdigest()
    path = folder / competition_id / _FINGERPRINTS
    refs = tuple(one.ref for one in here)
    # A missing or damaged file is written again below.
    with (
        suppress(OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError),
        np.load(path, allow_pickle=False) as kept,
    ):
        if str(kept["digest"]) == digest:
            return KernelIndex(refs, kept["hashes"], kept["owners"], digest)
    texts = (text_of(folder, competition_id, ref) for ref in refs)
    single = [np.unique(winnowing.tokens_of(text).fingerprints[0]) for text in texts]
    hashes = np.concatenate(single) if single else np.empty(0, np.uint64)
    owners = np.repeat(np.arange(len(single), dtype=np.int32), [len(one) for one in single])
    order = np.argsort(hashes, kind="stable")
    index = KernelIndex(refs, hashes[order], owners[order], digest)
    if here:
        with writing(path), replacing(path, durable=False) as stream:
            np.savez(stream, hashes=index.hashes, owners=index.owners, digest=np.array(digest))
    return index


def competitions_here(folder: Path) -> list[str]:
    """List the competitions with downloaded kernels."""
    if not folder.is_dir():
        return []
    with reading(folder):
        return sorted(path.parent.name for path in folder.glob(f"*/{_FETCHED}"))
