"""Public kernels of tests: a source that delivers them, and a folder that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from mlebench_console.engine.integrity import kernels
from mlebench_console.engine.integrity.kernels import FetchedKernel
from mlebench_console.engine.kaggle import NotAvailable, RulesNotAccepted
from mlebench_console.engine.kaggle.client import PublishedKernel


@dataclass
class MadeKernels:
    """Delivers Python scripts by their names; those that are `403` or `404` it does not."""

    texts: Mapping[str, str]
    asked: list[str] = field(default_factory=list)

    def kernel(self, ref: str) -> PublishedKernel:
        self.asked.append(ref)
        text = self.texts[ref]
        if text == "403":
            raise RulesNotAccepted(ref)
        if text == "404":
            raise NotAvailable(ref)
        kind = "notebook" if text.startswith("{") else "script"
        return PublishedKernel(text, kind, "r" if text.startswith("# R") else "python", 3)


def put(folder: Path, texts: Mapping[str, Mapping[str, str]]) -> list[FetchedKernel]:
    """Fetch kernels, given by competition and name, into a folder."""
    known = {competition_id: list(named) for competition_id, named in texts.items()}
    source = MadeKernels({ref: text for named in texts.values() for ref, text in named.items()})
    with patch.object(kernels, "known_kernels", lambda: known):
        return list(kernels.fetch(folder, known, source, pause=lambda _: None, now=lambda: 1.0))
