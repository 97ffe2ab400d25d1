"""The fields of the launch screen: which draft field each is, what it is called, what is typed there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FormField:
    """One line to type into."""

    name: str
    label: str
    hint: str


_WHAT = (
    FormField("agent", "agent", "its id, such as aide"),
    FormField("competitions", "competitions", "a split, or names"),
    FormField("seeds", "seeds", "of each competition"),
    FormField("time_limit", "time limit", "24h, 90m, 1h30m"),
    FormField("concurrency", "at once", "runs"),
    FormField("priority", "priority", "higher goes first"),
    FormField("start_ramp", "start ramp", "time between starts"),
    FormField("retries", "retries", "of infrastructure"),
    FormField("name", "name", "the agent's if empty"),
    FormField("experiment", "experiment", "its leaderboard row"),
    FormField("agents_dir", "agents folder", "in MLE-bench's format"),
)
_WHERE = (
    FormField("runtime", "runtime", "process or docker"),
    FormField("network", "network", "none, models or open"),
    FormField("allow", "hosts", "that models may reach"),
    FormField("edition", "edition", "v1 or corrected"),
    FormField("descriptions", "descriptions", "obfuscated or as usual"),
    FormField("cpus", "CPUs", "that a run counts as"),
    FormField("memory_gb", "memory GB", "no limit if empty"),
    FormField("gpus", "GPUs", "of a run; -1 is all"),
    FormField("runs_per_gpu", "runs per GPU", "1"),
    FormField("idle_limit", "idle limit", "30m; none if empty"),
    FormField("disk_gb", "disk GB", "no limit if empty"),
)

COLUMNS = (_WHAT, _WHERE)
FIELDS = (*_WHAT, *_WHERE)
