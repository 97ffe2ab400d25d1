"""The CRC-32C checksum of large buffers without a compiled library: blocks at once by numpy, not byte by byte."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
_BLOCK = 1024
_BATCH = 256  # blocks; their index array takes 2 MB
_ONES = 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes."""
    if len(data) < _BLOCK:
        return _plain(data)
    # Zeros before a message leave a checksum that starts at 0 as it is, and starting at all ones
    # equals flipping the first four bytes: so any length becomes whole blocks.
    buffer = np.zeros(-(-len(data) // _BLOCK) * _BLOCK, dtype=np.uint8)
    start = len(buffer) - len(data)
    buffer[start:] = np.frombuffer(data, dtype=np.uint8)
    buffer[start : start + 4] ^= 0xFF
    table = _by_position()
    heads = [table[place].tolist() for place in range(4)]
    flat, offsets = table.ravel(), np.arange(_BLOCK, dtype=np.intp) * 256
    state = 0
    blocks = buffer.reshape(-1, _BLOCK)
    for first in range(0, len(blocks), _BATCH):
        parts = np.bitwise_xor.reduce(flat.take(blocks[first : first + _BATCH] + offsets), axis=1)
        for part in parts.tolist():
            state = (
                part
                ^ heads[0][state & 255]
                ^ heads[1][state >> 8 & 255]
                ^ heads[2][state >> 16 & 255]
                ^ heads[3][state >> 24]
            )
    return state ^ _ONES


def _plain(data: bytes) -> int:
    table = _bytewise()
    state = _ONES
    for byte in data:
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ _ONES


@cache
def _bytewise() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


@cache
def _by_position() -> npt.NDArray[np.uint32]:
    """What a byte at each place of a block adds to the block's checksum."""
    last = np.array(_bytewise(), dtype=np.uint32)
    table = np.empty((_BLOCK, 256), dtype=np.uint32)
    table[-1] = last
    for place in range(_BLOCK - 2, -1, -1):
        table[place] = last[table[place + 1] & 255] ^ table[place + 1] >> 8
    return table
