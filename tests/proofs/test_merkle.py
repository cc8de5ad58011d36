"""Trees follow RFC 6962 and 9162: known roots, and proofs valid for only one leaf, one place and one size."""

from __future__ import annotations

import hashlib
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.proofs import merkle

# The leaves and roots with which certificate transparency logs have been tested since 2012.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
HASHES = [merkle.leaf_hash(leaf) for leaf in LEAVES]


@cache
def tree(size: int) -> tuple[bytes, ...]:
    return tuple(merkle.leaf_hash(number.to_bytes(2, "big")) for number in range(size))


def slow_root(hashes: tuple[bytes, ...]) -> bytes:
    """Return the root by the literal definition."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    half = 1
    while half * 2 < len(hashes):
        half *= 2
    return hashlib.sha256(b"\x01" + slow_root(hashes[:half]) + slow_root(hashes[half:])).digest()


@pytest.mark.parametrize("size", range(9))
def test_roots_equal_the_known_ones(size: int) -> None:
    assert merkle.root(HASHES[:size]).hex() == ROOTS[size]


def test_roots_of_all_sizes_are_computed_in_one_pass() -> None:
    assert [root.hex() for root in merkle.roots(HASHES, range(9))] == [*ROOTS]
    assert [root.hex() for root in merkle.roots(HASHES, [3, 3, 8])] == [ROOTS[3], ROOTS[3], ROOTS[8]]
    with pytest.raises(ValueError, match="only 8 of 9"):
        [*merkle.roots(HASHES, [9])]


@pytest.mark.parametrize(
    ("size", "index", "path"),
    [
        (1, 0, []),
        (
            8,
            0,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            8,
            5,
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (3, 2, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
        (
            5,
            1,
            [
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ],
)
def test_inclusion_proofs_equal_the_known_ones(size: int, index: int, path: list[str]) -> None:
    assert [hash_.hex() for hash_ in merkle.inclusion(HASHES[:size], index)] == path


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        (1, 1, []),
        (
            1,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            [
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ],
)
def test_consistency_proofs_equal_the_known_ones(old: int, new: int, path: list[str]) -> None:
    assert [hash_.hex() for hash_ in merkle.consistency(HASHES[:new], old)] == path


@pytest.mark.parametrize("size", [*range(1, 34), 100])
def test_each_leaf_of_each_size_is_proven(size: int) -> None:
    root = slow_root(tree(size))
    assert merkle.root(tree(size)) == root
    for index, leaf in enumerate(tree(size)):
        path = merkle.inclusion(tree(size), index)
        assert merkle.root_from_inclusion(leaf, index, size, path) == root
        assert merkle.root_from_inclusion(tree(200)[-1], index, size, path) != root


@pytest.mark.parametrize("size", range(1, 34))
def test_each_smaller_size_is_proven_consistent(size: int) -> None:
    for old in range(1, size + 1):
        path = merkle.consistency(tree(size), old)
        first, second = slow_root(tree(old)), slow_root(tree(size))
        assert merkle.is_consistent(old, size, first, second, path)
        assert not merkle.is_consistent(old, size, second, first, path) or first == second
        assert not merkle.is_consistent(old, size, first, second, [*path, first])
        if path:
            assert not merkle.is_consistent(old, size, first, second, path[:-1])
            assert not merkle.is_consistent(old - 1, size, first, second, path)


@given(st.data())
def test_inclusion_proof_is_valid_for_only_one_place(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 80))
    index = data.draw(st.integers(0, size - 1))
    path = merkle.inclusion(tree(size), index)
    root = merkle.root(tree(size))
    other = data.draw(st.integers(-2, 90).filter(lambda place: place != index))
    assert merkle.root_from_inclusion(tree(size)[index], other, size, path) != root
    assert merkle.root_from_inclusion(tree(size)[index], index, size, [*path, root]) != root
    if path:
        assert merkle.root_from_inclusion(tree(size)[index], index, size, path[1:]) != root
        place = data.draw(st.integers(0, len(path) - 1))
        bad = [*path]
        bad[place] = merkle.leaf_hash(bad[place])
        assert merkle.root_from_inclusion(tree(size)[index], index, size, bad) != root


@pytest.mark.parametrize("old", [0, 9, -1])
def test_impossible_size_is_rejected(old: int) -> None:
    with pytest.raises(ValueError, match="never had the size"):
        merkle.consistency(HASHES, old)
    assert not merkle.is_consistent(old, 8, HASHES[0], HASHES[1], [HASHES[2]])
