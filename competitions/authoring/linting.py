"""What is wrong with a description: what it promises and is not there, and what it must tell and does not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from competitions.model import Competition

_SECTIONS = ("Files", "Metric", "Submission")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PLACEHOLDER = re.compile(r"[<*{].*|\.\.\..*", re.DOTALL)
_FILE = re.compile(
    r"[\w./<>*{}-]+\.(?:csv|json|jsonl|txt|zip|7z|tar|gz|npy|parquet|png|jpe?g|tiff?|dcm|wav|aiff?|mp4)"
)
_ARCHIVES = {".zip", ".7z", ".gz", ".tar"}
# Signs and words without which nothing is computed.
_FORMULA = re.compile(r"[=/^]|\b(?:sum|mean|share|root|number|divided|area|pairs)\b", re.IGNORECASE)


def faults_of(text: str, competition: Competition, public: Path) -> Iterator[str]:
    """What is wrong with a description for one edition, compared with the facts and with what agents are given."""
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
    """The sections of a description by their headings."""
    parts = re.split(r"^## +(.+?) *$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def example_of(text: str) -> list[list[str]]:
    """The rows of the submission that a description gives as an example; none if there is no example."""
    found = _FENCE.search(sections_of(text).get("Submission", ""))
    return list(csv.reader(io.StringIO(found.group(1)))) if found else []


def _faults_of_names(text: str, public: Path) -> Iterator[str]:
    named = dict.fromkeys(_CODE.findall(_FENCE.sub("", text)))
    there = [path for path in sorted(public.iterdir()) if path.name != "description.md"]
    archived = any(path.suffix in _ARCHIVES for path in there)  # what is in them is not looked for
    for name in named:
        if archived or name[0] in "._":  # an ending
            continue
        if _FILE.fullmatch(name) or re.fullmatch(r"[\w./<>*{}-]+/", name):
            known = _PLACEHOLDER.sub("", name)
            known = known if known == name else known.rpartition("/")[0]
            if not _is_there(known, public, there):
                yield f"it names `{name}`, which is not among the files that agents get"
    # one of files that are numbered stands for all of them
    words = {re.sub(r"\d+", "1", word) for word in re.split(r"[^\w.-]+", " ".join(named))}
    for path in there:
        if re.sub(r"\d+", "1", path.name) not in words:
            yield f"it does not name {path.name}, which agents get"


def _is_there(name: str, public: Path, there: Sequence[Path]) -> bool:
    if (public / name).exists():
        return True
    # files are often named by their names alone, where the text says in which folder they lie
    folders = [path for path in there if path.is_dir()]
    return "/" not in name.rstrip("/") and any(next(path.rglob(name.rstrip("/")), None) for path in folders)
