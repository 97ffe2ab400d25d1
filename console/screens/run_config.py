"""What a run was given: what the operator asked for, the agent's arguments and variables without their secrets."""

from __future__ import annotations

import re

from console import wording
from console.tui.painting import Line, foreign
from console.views.run import RunFacts
from environment.runner.protocol import Order

# Values under such names are kept off the screen even where a config file holds them in the open.
_SECRET_NAME = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_HIDDEN = "hidden"
_LABEL = 18


def config(facts: RunFacts, order: Order | None, width: int) -> list[Line]:
    """What was asked for, what the latest attempt got, and where things are."""
    spec, attempt = facts.sweep.spec, facts.attempt
    machine = attempt.hardware.in_words() if attempt and attempt.hardware else ""
    isolation = {None: wording.UNKNOWN, True: "isolated", False: "not isolated: trusted agents only"}
    rows = [
        ("agent", spec.agent_id),
        ("agent version", facts.sweep.agent_version),
        ("edition", spec.edition),
        ("time limit", wording.limit(spec.time_limit_seconds)),
        ("runtime", attempt.runtime if attempt else spec.runtime),
        ("isolation", isolation[attempt.isolated if attempt else None]),
        ("network", spec.network),
        ("processors", f"{spec.cpus:g}"),
        ("memory", wording.size(spec.memory_bytes) if spec.memory_bytes else "not limited"),
        ("GPUs", "all" if spec.gpus < 0 else str(spec.gpus)),
        ("machine", machine or wording.UNKNOWN),
        ("image digest", (attempt.image if attempt else "") or "none"),
        ("directory", str(facts.directory) if attempt else wording.UNKNOWN),
    ]
    if order is not None:
        rows += _given(order)
    if facts.competition is not None:
        metric = facts.competition.metric.name
        rows.append(("metric", f"{metric}, {wording.better(facts.competition.thresholds)}"))
        rows += [
            ("known defect", text)
            for text in facts.competition.defects_in("corrected" if spec.edition == "corrected" else "v1")
        ]
    return [
        Line(
            ((f"  {name:<{_LABEL}}", "dim"), (foreign(value, max(10, width - _LABEL - 4)).rstrip(), "text")),
            key=(name, place),
            selectable=True,
        )
        for place, (name, value) in enumerate(rows)
    ]


def _given(order: Order) -> list[tuple[str, str]]:
    rows = [("start script", order.start)]
    if order.image:
        rows.append(("image", order.image))
    if order.gpu_uuids:
        rows.append(("GPU", ", ".join(order.gpu_uuids)))
    if order.allowed_hosts:
        rows.append(("allowed hosts", ", ".join(order.allowed_hosts)))
    rows += [("argument", argument) for argument in without_secrets(order.arguments)]
    return rows + [
        ("variable", f"{name}={_HIDDEN if _SECRET_NAME.search(name) else value}")
        for name, value in order.variables
    ]


def without_secrets(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments with the values of those hidden whose names sound like secrets: `a.key=x`, or `--key x`."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        name, equals, _value = argument.partition("=")
        if hide_next and not argument.startswith("--"):
            shown.append(_HIDDEN)
        elif equals and _SECRET_NAME.search(name):
            shown.append(f"{name}={_HIDDEN}")
        else:
            shown.append(argument)
        hide_next = not equals and argument.startswith("--") and bool(_SECRET_NAME.search(argument))
    return tuple(shown)
