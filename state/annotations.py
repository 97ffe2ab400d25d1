"""Notes and tags of runs and sweeps; author and time are kept with them and as events."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import events
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.records import Run, Sweep, Tag

LONGEST_NOTE = 2000
MOST_TAGS = 20
_TAG = re.compile(r"[^\W_][\w.+-]{0,39}")


@dataclass(frozen=True)
class Annotation:
    """A change of notes and tags.

    Attributes:
        note: the new note; empty removes it, None keeps it.
        add: tags to add.
        remove: tags to remove, where they exist.
    """

    note: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def checked(self) -> Annotation:
        """Return the change with its texts normalized: printable, on one line, tags in lower case.

        Raises:
            UsageProblem: a text is not allowed, or nothing is changed.
        """
        if self.note is None and not self.add and not self.remove:
            raise UsageProblem("neither a note nor a tag was given")
        note = None if self.note is None else _printable(self.note)
        if note is not None and len(note) > LONGEST_NOTE:
            raise UsageProblem(f"the note has {len(note):,} characters (at most {LONGEST_NOTE:,})")
        return replace(self, note=note, add=check_tags(self.add), remove=check_tags(self.remove))


def check_tags(names: Sequence[str]) -> tuple[str, ...]:
    """Return tags in lower case, each once.

    Raises:
        UsageProblem: a text is not a valid tag.
    """
    for name in names:
        if not _TAG.fullmatch(name):
            shown = _printable(name)[:60]
            raise UsageProblem(
                f"'{shown}' can't be a tag", "", "Use letters, digits, '.', '_', '+' and '-', at most 40."
            )
    return tuple(dict.fromkeys(name.lower() for name in names))


def annotate(database: Database, subject: Run | Sweep, change: Annotation, *, by: str, now: float) -> None:
    """Change the note and tags of a run or a sweep; an annotation that changes nothing leaves no event."""
    change = change.checked()
    table = "runs" if isinstance(subject, Run) else "sweeps"
    told, columns = [], dict[str, Any]()
    known = {tag.name for tag in subject.tags}
    added = [name for name in change.add if name not in known]
    removed = [name for name in change.remove if name in known and name not in change.add]
    if added or removed:
        tags = [tag for tag in subject.tags if tag.name not in removed]
        tags += [Tag(name, by, now) for name in added]
        if len(tags) > MOST_TAGS:
            raise UsageProblem(
                f"more than {MOST_TAGS} tags can't be on one {table.removesuffix('s')}",
                f"there would be {len(tags)}",
                "Take some off with --remove.",
            )
        columns["tags"] = json.dumps([asdict(tag) for tag in tags])
        told += [f"tagged {', '.join(added)}"] if added else []
        told += [f"no longer tagged {', '.join(removed)}"] if removed else []
    if change.note is not None and change.note != subject.note:
        columns |= {"note": change.note, "noted_by": by, "noted_at": now}
        told.append(f"note: {change.note}" if change.note else "note removed")
    if not columns:
        return
    with database.transaction():
        database.update(table, subject.id, **columns)
        text = f"{'; '.join(told)}, by {by}"
        if isinstance(subject, Run):
            events.append(database, now, EventKind.RUN_ANNOTATED, text, run=subject)
        else:
            events.append(database, now, EventKind.SWEEP_ANNOTATED, text, sweep_id=subject.id)


def _printable(text: str) -> str:
    """Return text on one line, without control and direction-changing characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
