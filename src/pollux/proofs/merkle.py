"""Merkle trees as in RFC 9162 (and 6962): a root over a growing list, and short proofs about it.

The hash of a leaf is SHA-256 of a zero byte and the leaf; that of a node, SHA-256 of a one byte and its two halves. The
number of leaves in the left half is the largest power of two that is smaller than the total. So a growing list keeps
its old subtrees, and a few hashes prove that it contains a leaf or continues a shorter list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf_hash(leaf: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(hashes: Iterable[bytes]) -> bytes:
    """Return the root over the hashes of leaves."""
    full: list[tuple[int, bytes]] = []
    for leaf in hashes:
        _add(full, leaf)
    return _fold(full)


def roots(hashes: Iterable[bytes], sizes: Iterable[int]) -> Iterator[bytes]:
    """Yield the roots that a growing list had at some sizes, in one pass; the sizes must not fall.

    Raises `ValueError` if the list is too short for a size.
    """
    leaves = iter(hashes)
    full: list[tuple[int, bytes]] = []
    """The full subtrees so far, the largest first, with their sizes."""
    n_added = 0
    for size in sizes:
        while n_added < size:
            leaf = next(leaves, None)
            if leaf is None:
                raise ValueError(f"there are only {n_added} of {size} leaves")
            _add(full, leaf)
            n_added += 1
        yield _fold(full)


def inclusion(hashes: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes that lead from a leaf to the root, the lowest first."""
    if len(hashes) == 1:
        return []
    half = _half(len(hashes))
    if index < half:
        return [*inclusion(hashes[:half], index), root(hashes[half:])]
    return [*inclusion(hashes[half:], index - half), root(hashes[:half])]


def root_from_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof leads to, or None if no tree of that size has such a proof."""
    if not 0 <= index < size:
        return None
    node, last = leaf, size - 1
    for step in path:
        if last == 0:
            return None
        if index % 2 or index == last:
            node = node_hash(step, node)
            while index % 2 == 0 and index:  # the node has no sibling on these levels
                index, last = index // 2, last // 2
        else:
            node = node_hash(node, step)
        index, last = index // 2, last // 2
    return node if last == 0 else None


def consistency(hashes: Sequence[bytes], old: int) -> list[bytes]:
    """Return the hashes that prove that the list begins with its first `old` leaves."""
    if not 0 < old <= len(hashes):
        raise ValueError(f"a list of {len(hashes)} never had the size {old}")
    return _sub_proof(hashes, old, is_complete=True)


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Return whether a proof shows that the new list begins with all of the old one."""
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
    size, node = 1, leaf
    while full and full[-1][0] == size:
        node = node_hash(full.pop()[1], node)
        size *= 2
    full.append((size, node))


def _fold(full: list[tuple[int, bytes]]) -> bytes:
    if not full:
        return EMPTY
    node = full[-1][1]
    for _, left in reversed(full[:-1]):
        node = node_hash(left, node)
    return node


def _half(size: int) -> int:
    """Return the largest power of two that is smaller than `size`."""
    return 1 << ((size - 1).bit_length() - 1)


def _sub_proof(hashes: Sequence[bytes], old: int, *, is_complete: bool) -> list[bytes]:
    if old == len(hashes):
        return [] if is_complete else [root(hashes)]
    half = _half(len(hashes))
    if old <= half:
        return [*_sub_proof(hashes[:half], old, is_complete=is_complete), root(hashes[half:])]
    return [*_sub_proof(hashes[half:], old - half, is_complete=False), root(hashes[:half])]
