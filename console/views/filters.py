"""The language of `/`: `state:failed class:infra split:low seed:2` and free words; `!` negates."""

from __future__ import annotations

from dataclasses import dataclass

from state.records import Run

FIELDS = ("state", "class", "split", "seed", "outcome", "standing")


@dataclass(frozen=True)
class _Term:
    field: str
    value: str
    negated: bool


@dataclass(frozen=True)
class Filter:
    """Which runs to show; an empty one shows all."""

    text: str = ""
    terms: tuple[_Term, ...] = ()
    unknown: tuple[str, ...] = ()

    def accepts(self, run: Run, split: str) -> bool:
        """Whether a run of a competition in `split` is shown: every term must agree."""
        return all(_holds(term, run, split) is not term.negated for term in self.terms)

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.terms)


def parse(text: str) -> Filter:
    """Read a filter; fields that do not exist are named in `unknown` and otherwise left out."""
    terms, unknown = [], []
    for word in text.split():
        negated = word.startswith("!")
        word = word.removeprefix("!").lower()
        name, colon, value = word.partition(":")
        if not word:
            continue
        if not colon:
            terms.append(_Term("", word, negated))
        elif name in FIELDS:
            terms.append(_Term(name, value, negated))
        else:
            unknown.append(name)
    return Filter(text, tuple(terms), tuple(unknown))


def words_accept(text: str, *shown: str) -> bool:
    """Whether each word of a simple filter is in what is shown, `!word` in none of it."""
    together = " ".join(shown).lower()
    return all(
        (word.removeprefix("!") in together) is not word.startswith("!") for word in text.lower().split()
    )


def _holds(term: _Term, run: Run, split: str) -> bool:
    wanted = term.value
    if term.field == "":
        return wanted in f"{run.competition_id} {run.failure_text} {run.outcome or ''}".lower()
    if term.field == "seed":
        return wanted == str(run.seed)
    if term.field == "split":
        return split.startswith(wanted)
    if term.field == "state":
        return run.state.startswith(wanted) or (wanted == "live" and run.is_live)
    found = {"class": run.failure_class, "outcome": run.outcome, "standing": run.standing}[term.field]
    text = "" if found is None else found.replace("_", " ")
    return bool(wanted) and (
        text.startswith(wanted) or (wanted == "medal" and text in ("gold", "silver", "bronze"))
    )
