"""MLE-bench's run groups on disk: finding, listing and writing them; grading and aggregating are elsewhere."""

from engine.rungroups.groups import GroupRun, RunGroup, find_groups, read_group
from engine.rungroups.mapping import MAPPING_NAME, read_mapping, write_mapping
from engine.rungroups.submission_list import submission_lines, write_submission_list

__all__ = [
    "MAPPING_NAME",
    "GroupRun",
    "RunGroup",
    "find_groups",
    "read_group",
    "read_mapping",
    "submission_lines",
    "write_mapping",
    "write_submission_list",
]
