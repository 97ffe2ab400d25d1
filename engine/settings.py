"""How much of this host the engine may use: the `[engine]` table of config.toml, or what the host has."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from foundation.problems import UsageProblem


@dataclass(frozen=True)
class Settings:
    """The engine's own limits.

    Attributes:
        cpus: processor slots that live runs may take together.
        memory_gb: what the memory limits of live runs may come to together.
        dataset_workers: datasets that are prepared at once.
        download_workers: datasets that are downloaded at once.
        keep_free_gb: how much of the data directory's disk datasets must leave free.
        grading_workers: submissions that are graded at once.
    """

    cpus: float
    memory_gb: float
    dataset_workers: int = 2
    download_workers: int = 3
    keep_free_gb: float = 1.0
    grading_workers: int = 2

    @property
    def memory_bytes(self) -> int:
        """The memory for runs."""
        return round(self.memory_gb * 1e9)


def read_settings(config_file: Path) -> Settings:
    """Read the settings.

    Raises:
        UsageProblem: the file or its `[engine]` table can't be understood.
    """
    try:
        table = tomllib.loads(config_file.read_text()).get("engine", {}) if config_file.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Mend or remove it.") from error
    known = {field.name for field in fields(Settings)}
    for name, value in table.items():
        if name not in known:
            raise UsageProblem(
                f"{config_file}: [engine] has no '{name}'", "", f"Known are: {', '.join(sorted(known))}."
            )
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UsageProblem(f"{config_file}: [engine] {name} is not a number above 0")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Settings(**{"cpus": float(os.cpu_count() or 1), "memory_gb": memory / 1e9, **table})
