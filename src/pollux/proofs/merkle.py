"""Merkle trees as in RFC 9162 (and 6962): a root over a growing list, and short proofs about it.

A leaf's hash is SHA-256 of a zero byte and the leaf, a node's that of a one byte and its two halves; the left half has
as many leaves as the largest power of two that is smaller than the whole. So a list that only ever grows keeps its old
subtrees, and a few hashes show that a leaf is in it, or that it is the continuation of a shorter one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf_hash(leaf: bytes) -> bytes:
    """Hash a leaf."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two halves into one."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(hashes: Iterable[bytes]) -> bytes:
    """Return the root over the hashes of some leaves."""
    full: list[tuple[int, bytes]] = []
    for one in hashes:
        _add(full, one)
    return _folded(full)


def roots(hashes: Iterable[bytes], sizes: Iterable[int]) -> Iterator[bytes]:
    """Return the roots that a growing list had at some sizes, in one pass; the sizes must rise.

    Raises `ValueError` where the list is too short for a size.
    """
    waiting = iter(hashes)
    full: list[tuple[int, bytes]] = []
    """The full subtrees so far, the largest first, with their sizes."""
    n_taken = 0
    for size in sizes:
        while n_taken < size:
            found = next(waiting, None)
            if found is None:
                raise ValueError(f"there are only {n_taken} of {size} leaves")
            _add(full, found)
            n_taken += 1
        yield _folded(full)


def inclusion(hashes: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from one leaf to the root, the lowest first."""
    if len(hashes) == 1:
        return []
    half = _half(len(hashes))
    if index < half:
        return [*inclusion(hashes[:half], index), root(hashes[half:])]
    return [*inclusion(hashes[half:], index - half), root(hashes[:half])]


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof leads to, or nothing if it cannot be one of a tree of that size."""
    if not 0 <= index < size:
        return None
    found, last = leaf, size - 1
    for step in path:
        if last == 0:
            return None
        if index % 2 or index == last:
            found = node_hash(step, found)
            while index % 2 == 0 and index:  # no brother on these levels
                index, last = index // 2, last // 2
        else:
            found = node_hash(found, step)
        index, last = index // 2, last // 2
    return found if last == 0 else None


def consistency(hashes: Sequence[bytes], old: int) -> list[bytes]:
    """Return the hashes that show that the list goes on from its first `old` leaves."""
    if not 0 < old <= len(hashes):
        raise ValueError(f"{old} is no size that a list of {len(hashes)} has had")
    return _sub_proof(hashes, old, is_whole=True)


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Tell whether a proof shows that the new list begins with all of the old one."""
    if old == new:
        return not path and old_root == new_root
    if not 0 < old < new or not path:
        return False
    steps = [old_root, *path] if old & (old - 1) == 0 else [*path]
    index, last = old - 1, new - 1
    while index % 2:
        index, last = index // 2, last // 2
    first = second = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if index % 2 or index == last:
            first, second = node_hash(step, first), node_hash(step, second)
            while index % 2 == 0 and index:
                index, last = index // 2, last // 2
        else:
            second = node_hash(second, step)
        index, last = index // 2, last // 2
    return last == 0 and (first, second) == (old_root, new_root)


def _add(full: list[tuple[int, bytes]], leaf: bytes) -> None:
    size, found = 1, leaf
    while full and full[-1][0] == size:
        found = node_hash(full.pop()[1], found)
        size *= 2
    full.append((size, found))


def _folded(full: list[tuple[int, bytes]]) -> bytes:
    if not full:
        return EMPTY
    found = full[-1][1]
    for _, one in reversed(full[:-1]):
        found = node_hash(one, found)
    return found


def _half(size: int) -> int:
    """Return the largest power of two that is smaller."""
    return 1 << ((size - 1).bit_length() - 1)


def _sub_proof(hashes: Sequence[bytes], old: int, *, is_whole: bool) -> list[bytes]:
    if old == len(hashes):
        return [] if is_whole else [root(hashes)]
    half = _half(len(hashes))
    if old <= half:
        return [*_sub_proof(hashes[:half], old, is_whole=is_whole), root(hashes[half:])]
    return [*_sub_proof(hashes[half:], old - half, is_whole=False), root(hashes[:half])]
