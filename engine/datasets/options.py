"""How a dataset is to be prepared, as it was asked for; kept with it, so that a restart goes on in the same way."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from engine.datasets.descriptions import OURS

DEMO = "demo"


@dataclass(frozen=True)
class Options:
    """What was asked for.

    Attributes:
        source: `demo`, an extracted Kaggle folder, or empty for what lies in the data directory or on Kaggle.
        verify: compare with the known checksums; None: where they hold, which is for Kaggle's own zip.
        keep_raw: leave what was extracted in `raw/`.
        discard_zip: the zip is not needed any more: its space is given back while it is extracted, or at the end.
        descriptions: whose text the agent finds beside the data: `ours`, `obfuscated`, `kaggle`, or a folder.
    """

    source: str = ""
    verify: bool | None = None
    keep_raw: bool = False
    discard_zip: bool = False
    descriptions: str = OURS

    def to_text(self) -> str:
        """Write them for keeping."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Options:
        """Read back what `to_text` wrote; any other text is a source, as it was kept formerly."""
        return cls(**json.loads(text)) if text.startswith("{") else cls(source=text)
