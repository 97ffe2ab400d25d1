"""Format many numbers at a time as Python and pandas do; unusual numbers are left to Python.

A column of texts is a matrix of characters: one row per position, one column per number, 0 for no character.
Positions run from left to right, so that dropping the zeros gives the text.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Planes = npt.NDArray[np.uint8]
Whole = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]

_ZERO, _MINUS, _POINT = ord("0"), ord("-"), ord(".")
_POWERS = np.array([10**power for power in range(20)], dtype=np.uint64)
_GROUP = 4  # digits looked up at a time
_DIGITS = (
    np.array([np.arange(10**_GROUP) // 10**place % 10 for place in range(_GROUP)]).astype(np.uint8) + _ZERO
)
_BOOLS = np.array([[*b"False"], [*b"True\0"]], dtype=np.uint8).T.copy()
_SURE = 15  # decimals of so many digits all have different doubles
_MOST_PLACES = 19  # digits after the point that fit into 64 bits
_LEAST, _MOST = 1e-3, 1e16  # numbers between them are formatted here; Python formats the others
_BOUNDS = np.array([float(f"1e{power}") for power in range(-3, 17)])
# Products with powers of ten need more than a double's 53 bits; without a wider type, Python formats them.
_WIDE = np.finfo(np.longdouble).nmant >= 63
_WIDE_POWERS = _POWERS.astype(np.longdouble)
_DOUBT = (
    0.005  # nearer to a tie than this the product could round wrongly: below 2**57 it is off by up to 2**-8
)


def of_bools(values: npt.NDArray[np.bool_]) -> Planes:
    """Format True and False."""
    return np.ascontiguousarray(_BOOLS[:, values.astype(np.intp)])


def of_whole(values: npt.NDArray[np.integer]) -> Planes:
    """Format integers."""
    if values.dtype.kind == "u":
        return _digits(values.astype(np.uint64))
    sizes = np.abs(values.astype(np.int64)).view(np.uint64)
    negative = values < 0
    if not negative.any():
        return _digits(sizes)
    return np.concatenate([_sign(negative), _digits(sizes)])


def of_decimals(values: Numbers, *, significant: int | None = None) -> Planes:
    """Format floats in their shortest form, or with some significant digits as `%g` does; NaN as nothing."""
    sizes = np.abs(values)
    least = _MOST if significant is None else 10.0 ** (significant - 1)
    plain = ((sizes >= _LEAST) & (sizes < least)) | (sizes == 0)
    if significant is None:
        whole, fraction, places, done = _shortest(sizes, plain)
    else:
        whole, fraction, places, done = _rounded(sizes, plain, significant)
    parts = [_whole_part(whole, done), _fraction_part(fraction, places, done, always=significant is None)]
    negative = np.signbit(values) & done
    if negative.any():
        parts.insert(0, _sign(negative))
    planes = np.concatenate(parts)
    left = np.flatnonzero(~done & ~np.isnan(values))
    return _with_texts(planes, left, values, significant) if len(left) else planes


def _sign(negative: npt.NDArray[np.bool_]) -> Planes:
    return (negative.view(np.uint8) * np.uint8(_MINUS))[None]


def _digits(values: Whole, *, width: int | None = None) -> Planes:
    """Format the digits of integers, without leading zeros unless a width is given."""
    padded = width is not None
    if width is None:
        width = len(str(int(values.max(initial=0))))
    planes = np.empty((width, len(values)), dtype=np.uint8)
    rest = values
    for low in range(0, width, _GROUP):
        if low + _GROUP < width:
            above = rest // _POWERS[_GROUP]
            group = rest - above * _POWERS[_GROUP]
            rest = above
        else:
            group = rest
        chosen = group.astype(np.intp)
        for place in range(low, min(low + _GROUP, width)):
            np.take(_DIGITS[place - low], chosen, out=planes[width - 1 - place], mode="clip")
    if not padded:
        for place in range(1, width):
            planes[width - 1 - place] *= values >= _POWERS[place]
    return planes


def _whole_part(whole: Whole, done: npt.NDArray[np.bool_]) -> Planes:
    planes = _digits(whole)
    if not done.all():
        planes *= done
    return planes


def _fraction_part(fraction: Whole, places: int, done: npt.NDArray[np.bool_], *, always: bool) -> Planes:
    """Format the point and the digits after it, without trailing zeros except a single one where `always`."""
    for step in (8, 4, 2, 1):
        if places > step and not (fraction % _POWERS[step]).any():
            fraction, places = fraction // _POWERS[step], places - step
    planes = np.empty((places + 1, len(fraction)), dtype=np.uint8)
    planes[1:] = _digits(fraction, width=places)
    shown = np.zeros(len(fraction), dtype=np.bool_)
    for place in range(places, 0, -1):
        if place == 1 and always:
            shown[:] = True
        shown |= planes[place] != _ZERO
        planes[place] *= shown
    planes[0] = shown * np.uint8(_POINT)
    if not done.all():
        planes *= done
    return planes


_Parts = tuple[Whole, Whole, int, npt.NDArray[np.bool_]]


def _shortest(sizes: Numbers, plain: npt.NDArray[np.bool_]) -> _Parts:
    """Return whole part, fraction, the fraction's number of digits, and for which numbers these are valid."""
    greatest = float(sizes.max(initial=0.0, where=plain))
    # so many places that no number has more than `_SURE` digits: a decimal that gives the same double is then
    # the only one of its length, and no shorter one gives it
    places = max(_SURE - max(len(f"{greatest:.0f}"), 1), 1)
    power = float(_POWERS[places])
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(sizes * power)
        done = plain & (scaled / power == sizes) & (scaled < 10.0**_SURE)
    scaled[~done] = 0
    units = scaled.astype(np.uint64)
    whole = units // _POWERS[places]
    fraction = units - whole * _POWERS[places]
    left = np.flatnonzero(plain & ~done)
    if not len(left) or not _WIDE:
        return whole, fraction, places, done
    fraction *= _POWERS[_MOST_PLACES - places]
    units, shift, doubtful = _shortest_units(sizes[left])
    _put(whole, fraction, done, left[~doubtful], units[~doubtful], shift[~doubtful])
    return whole, fraction, _MOST_PLACES, done


def _shortest_units(sizes: Numbers) -> tuple[Whole, Positions, npt.NDArray[np.bool_]]:
    """Return numbers as multiples of a power of ten, that power, and whether the multiple is uncertain.

    It is the nearest multiple with 15 digits, or else 16, that gives the same double, or else the nearest
    one with 17, which always does.
    """
    shift = _SURE + 1 - (np.searchsorted(_BOUNDS, sizes, side="right") - 4)
    units, off = _units(sizes, shift)
    half = np.spacing(sizes) * _POWERS[shift].astype(np.float64) / 2
    doubtful = np.frexp(sizes)[0] == 0.5  # only the neighbours of a power of two are at unequal distances
    near_tie = np.abs(off) > 0.5 - _DOUBT
    for step in (10, 100):
        below = units // np.uint64(step)
        rest = (units - below * np.uint64(step)).astype(np.float64) + off
        above = rest > step / 2
        distance = np.where(above, step - rest, rest)
        fits = distance < half
        doubtful |= (np.abs(distance - half) < _DOUBT) | (fits & (np.abs(rest - step / 2) < _DOUBT))
        shorter = (below + above) * np.uint64(step)
        units = np.where(fits, shorter, units)
        off = np.where(fits, np.where(above, -distance, distance), off)
        near_tie &= ~fits
    return units, shift, doubtful | near_tie


def _rounded(sizes: Numbers, plain: npt.NDArray[np.bool_], significant: int) -> _Parts:
    whole = np.zeros(len(sizes), dtype=np.uint64)
    fraction = np.zeros(len(sizes), dtype=np.uint64)
    done = plain & (sizes == 0)
    left = np.flatnonzero(plain & ~done)
    if len(left) and _WIDE:
        shift = significant - 1 - (np.searchsorted(_BOUNDS, sizes[left], side="right") - 4)
        units, off = _units(sizes[left], shift)
        doubtful = np.abs(off) > 0.5 - _DOUBT
        _put(whole, fraction, done, left[~doubtful], units[~doubtful], shift[~doubtful])
    return whole, fraction, _MOST_PLACES, done


def _units(sizes: Numbers, shift: Positions) -> tuple[Whole, Numbers]:
    """Return numbers times a power of ten, rounded, and the rounding error."""
    product = sizes.astype(np.longdouble) * _WIDE_POWERS[shift]
    rounded = np.rint(product)
    return rounded.astype(np.uint64), (product - rounded).astype(np.float64)


def _put(
    whole: Whole,
    fraction: Whole,
    done: npt.NDArray[np.bool_],
    rows: Positions,
    units: Whole,
    shift: Positions,
) -> None:
    powers = _POWERS[shift]
    whole[rows] = units // powers
    fraction[rows] = units % powers * _POWERS[_MOST_PLACES - shift]
    done[rows] = True


def _with_texts(planes: Planes, rows: Positions, values: Numbers, significant: int | None) -> Planes:
    """Fill the rows that are still empty with numbers as Python formats them."""
    numbers = values[rows].tolist()
    texts = (
        list(map(repr, numbers)) if significant is None else [f"%.{significant}g" % each for each in numbers]
    )
    packed = np.array(texts, dtype=np.bytes_)
    width = packed.dtype.itemsize
    if width > len(planes):
        planes = np.concatenate([planes, np.zeros((width - len(planes), planes.shape[1]), dtype=np.uint8)])
    planes[:width, rows] = packed.view(np.uint8).reshape(len(rows), width).T
    return planes
