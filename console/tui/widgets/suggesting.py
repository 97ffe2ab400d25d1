"""What a field offers to complete to: competitions' names, and files on the disk."""

from __future__ import annotations

import asyncio

from textual.suggester import Suggester

from competitions import registry
from console.views import paths


class CompetitionNames(Suggester):
    """The first competition that begins as is typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Complete a name."""
        found = [name for name in registry.all_ids() if name.lower().startswith(value.lower())]
        return found[0] if found and value else None


class FilePaths(Suggester):
    """The path, as far as the names on the disk allow."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Complete a path, in a thread: looking a name up may wait for a slow disk."""
        return await asyncio.to_thread(paths.complete, value) if value else None
