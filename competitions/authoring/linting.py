"""Checks of a description: it must have the required sections and name exactly the files that agents get."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlebench_console.competitions.model import Competition

_SECTIONS = ("Files", "Metric", "Submission")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PLACEHOLDER = re.compile(r"[<*{].*|\.\.\..*", re.DOTALL)
_FILE = re.compile(
    r"[\w./<>*{}-]+\.(?:csv|json|jsonl|txt|zip|7z|tar|gz|npy|parquet|png|jpe?g|tiff?|dcm|wav|aiff?|mp4)"
)
_ARCHIVES = {".zip", ".7z", ".gz", ".tar"}
# A formula has at least one of these signs and words.
_FORMULA = re.compile(r"[=/^]|\b(?:sum|mean|share|root|number|divided|area|pairs)\b", re.IGNORECASE)


def faults_of(text: str, competition: Competition, public: Path) -> Iterator[str]:
    """Yield what is wrong with one edition's description, compared with the facts and the agents' files."""
    if not text.startswith("# "):
        yield "it does not begin with a title, `# ...`"
    sections = sections_of(text)
    for name in _SECTIONS:
        if name not in sections:
            yield f"it has no section `## {name}`"
    yield from _faults_of_names(text, public)
    metric = " ".join(sections.get("Metric", "").split())
    if metric:
        better = f"{competition.metric.direction} is better"
        if better not in metric:
            yield f"its section Metric does not say {better!r}"
        if not _FORMULA.search(metric):
            yield "its section Metric has no formula"


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of a description by heading."""
    parts = re.split(r"^## +(.+?) *$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def example_of(text: str) -> list[list[str]]:
    """Return the rows of the description's example submission; none if there is no example."""
    found = _FENCE.search(sections_of(text).get("Submission", ""))
    return list(csv.reader(io.StringIO(found.group(1)))) if found else []


def _faults_of_names(text: str, public: Path) -> Iterator[str]:
    named = dict.fromkeys(_CODE.findall(_FENCE.sub("", text)))
    present = [path for path in sorted(public.iterdir()) if path.name != "description.md"]
    archived = any(path.suffix in _ARCHIVES for path in present)  # their members are not examined
    for name in named:
        if archived or name[0] in "._":  # a file name suffix
            continue
        if _FILE.fullmatch(name) or re.fullmatch(r"[\w./<>*{}-]+/", name):
            known = _PLACEHOLDER.sub("", name)
            known = known if known == name else known.rpartition("/")[0]
            if not _exists(known, public, present):
                yield f"it names `{name}`, which is not among the files that agents get"
    # of numbered files the description need name only one
    words = {re.sub(r"\d+", "1", word) for word in re.split(r"[^\w.-]+", " ".join(named))}
    for path in present:
        if re.sub(r"\d+", "1", path.name) not in words:
            yield f"it does not name {path.name}, which agents get"


def _exists(name: str, public: Path, present: Sequence[Path]) -> bool:
    if (public / name).exists():
        return True
    # a description often gives the name alone, and says elsewhere in which folder the file lies
    folders = [path for path in present if path.is_dir()]
    return "/" not in name.rstrip("/") and any(next(path.rglob(name.rstrip("/")), None) for path in folders)
