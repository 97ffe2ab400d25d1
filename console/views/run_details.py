"""What of a run lies in files and is read only while its pane is looked at."""

from __future__ import annotations

from pathlib import Path

from console.views import files
from console.views.files import Entry
from console.views.run_facts import RunFacts
from console.views.usage import Usage, read_usage
from environment.runner import protocol
from environment.runner.protocol import Order

__all__ = ["Entry", "Listing", "Usage", "order_of", "usage_of"]

Listing = tuple[tuple[Entry, ...], bool]


def files_of(facts: RunFacts) -> Listing:
    """The files of the latest attempt, and whether there are more; waits for the disk."""
    return files.listing(facts.directory) if facts.directory is not None else ((), False)


def usage_of(facts: RunFacts) -> Usage:
    """What the latest attempt has used; waits for the disk."""
    return read_usage(facts.state_dir, facts.attempt.id) if facts.attempt is not None else Usage()


def order_of(facts: RunFacts) -> Order | None:
    """What the runner was told about the latest attempt, once it was; waits for the disk."""
    return _order(facts.directory) if facts.directory is not None else None


def _order(directory: Path) -> Order | None:
    return protocol.read_if_there(directory / protocol.ORDER, Order)
