"""Raw files brought into the prepared folders: linked or copied, under other names, written with their MD5 sums."""

from competitions.kit.placing.files import (
    copy_file,
    expect,
    move,
    place,
    place_named,
    place_tree,
    place_trees,
)

__all__ = ["copy_file", "expect", "move", "place", "place_named", "place_tree", "place_trees"]
