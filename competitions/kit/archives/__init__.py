"""Archives of raw data: zips here, 7z in `sevenzip`, tar in `tars`, a zip used as a folder in `zip_tree`."""

from competitions.kit.archives.zips import (
    create_empty,
    extract_as,
    files_in,
    member_size,
    new_member,
    opened,
    opened_member,
    ordered_by_checksum,
    read_members,
    repack,
    safe_path,
)

__all__ = [
    "create_empty",
    "extract_as",
    "files_in",
    "member_size",
    "new_member",
    "opened",
    "opened_member",
    "ordered_by_checksum",
    "read_members",
    "repack",
    "safe_path",
]
