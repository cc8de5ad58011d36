"""Forgeries that need no key: parts of a redacted record are moved together with the proofs of their fields."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
from tests.proofs.samples import KEY, SECRET

from pollux.proofs import cose, merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.commitment import MEMBER, Field, Salts, commitment
from pollux.proofs.entries import TREE, SessionEntry, entry_bytes
from pollux.proofs.redacted import REDACTED, hide_values, prove_fields
from pollux.proofs.seal import SCHEMA, SUBJECT, Seal

SESSION = "6ece72aa"
NAMES = ("a", "b", "content", "exit-code", "is-error", "/~", "ä", "\U0001f600", "\ufb33")


@dataclass(slots=True)
class Cell:
    """A field of a redacted record, with its proof."""

    value: Any
    proof: dict[str, str]


def random_value(random: Random, depth: int = 0) -> Any:  # noqa: ANN401  any JSON
    kind = random.randrange(4 if depth < 4 else 2)
    if kind == 2:
        return [random_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 3:
        return {random.choice(NAMES): random_value(random, depth + 1) for _ in range(random.randrange(4))}
    return random.choice(["yes", "no", "", REDACTED, "[]", 0, 1, -1, 0.5, True, False, None, 10**30])


def sealed_copy(record: dict[str, Any], is_hidden: Callable[[Field], bool]) -> dict[str, Any]:
    """Seal one record, and return a redacted copy of it with its proof."""
    salts = Salts(SECRET, SESSION)
    sealed = commitment(record, salts)
    entry = entry_bytes(SessionEntry(SESSION, "vac-00", "pollux", sealed.n_fields, sealed.root.hex(), [], TREE))
    hashes = [merkle.leaf_hash(entry), merkle.leaf_hash(b"{}")]
    seal = Seal(SCHEMA, 1, "2026-11-15T12:00:00.000Z", 2, merkle.root(hashes).hex(), None)
    data = cose.sign(
        json_bytes(msgspec.to_builtins(seal)), KEY, content_type="application/json", claims={1: "me", 2: SUBJECT}
    )
    copy = hide_values(record, is_hidden)
    proof = {
        "schema": "pollux.proof/1",
        "session": SESSION,
        "seal": b64encode(data).decode(),
        "entries": [{"entry": msgspec.json.decode(entry), "index": 0, "path": [hashes[1].hex()]}],
        "fields": prove_fields(record, copy, salts),
    }
    return {**copy, MEMBER: proof}


def cells(copy: dict[str, Any]) -> Any:  # noqa: ANN401  the same structure, with cells for fields
    """Return a copy in which each field is replaced by a cell with its proof."""
    proofs = iter(copy[MEMBER]["fields"])

    def cell(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, dict) and value:
            return {name: cell(value[name]) for name in sorted(value, key=lambda name: name.encode("utf-16-be"))}
        if isinstance(value, list) and value:
            return [cell(inner) for inner in value]
        return Cell(value, dict(next(proofs)))

    return cell({name: value for name, value in copy.items() if name != MEMBER})


def rebuilt(tree: Any, proof: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Return the record of these cells, with its proofs in the order that the verifier expects."""
    proofs: list[dict[str, str]] = []

    def value(part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, Cell):
            proofs.append(part.proof)
            return part.value
        if not part:  # all its members were removed
            proofs.append({"salt": "AAAA"})
            return part
        if isinstance(part, dict):
            return {name: value(part[name]) for name in sorted(part, key=lambda name: name.encode("utf-16-be"))}
        return [value(inner) for inner in part]

    return {**value(tree), MEMBER: {**proof, "fields": proofs}}


def containers(tree: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(tree, dict | list):
        yield tree
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from containers(inner)


def digest_of(part: Any) -> str:  # noqa: ANN401
    """Return the digest of a part from published values, computed as documented."""
    if isinstance(part, dict) and part:
        names = sorted(part, key=lambda name: name.encode("utf-16-be"))
        hashed: list[Any] = ["object", *(inner for name in names for inner in (name, digest_of(part[name])))]
    elif isinstance(part, list) and part:
        hashed = ["array", *map(digest_of, part)]
    elif not isinstance(part, Cell):
        hashed = ["value", "AAAA", part]
    elif "hidden" in part.proof:
        return part.proof["hidden"]
    else:
        hashed = ["value", part.proof.get("salt", ""), part.value]
    return sha256(json_bytes(hashed)).hex()


def is_truthful(original: Any, shown: Any) -> bool:  # noqa: ANN401
    """Return whether a value equals the original, except where it is `[redacted]`."""
    if shown == REDACTED:
        return True
    if isinstance(original, dict) and isinstance(shown, dict):
        return original.keys() == shown.keys() and all(is_truthful(original[name], shown[name]) for name in original)
    if isinstance(original, list) and isinstance(shown, list):
        return len(original) == len(shown) and all(map(is_truthful, original, shown))
    return json_bytes(original) == json_bytes(shown)


def change(random: Random, tree: Any) -> None:  # noqa: ANN401
    """Change a record in one way that needs no key."""
    holder = random.choice([candidate for candidate in containers(tree) if candidate] or [tree])
    if not holder:
        return
    names = [*holder] if isinstance(holder, dict) else [*range(len(holder))]
    name, other = random.choice(names), random.choice(names)
    random.choice(CHANGES)(random, holder, name, other)


def _remove(_: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    del holder[name]


def _hide(_: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    """Replace a part by `[redacted]` and its digest, which needs no key."""
    holder[name] = Cell(REDACTED, {"hidden": digest_of(holder[name])})


def _hide_wordlessly(random: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    holder[name] = Cell(random.choice(["", None, [], {}, 0]), {"hidden": digest_of(holder[name])})


def _swap(_: Random, holder: Any, name: Any, other: Any) -> None:  # noqa: ANN401
    holder[name], holder[other] = holder[other], holder[name]


def _repeat(_: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    if isinstance(holder, list):
        holder.insert(name, holder[name])
    else:
        holder[f"{name}2"] = holder[name]


def _rename(random: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    if isinstance(holder, dict):
        holder[random.choice([f"{name} ", name[:-1], random.choice(NAMES)])] = holder.pop(name)


def _insert(random: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    new = Cell(random.choice([REDACTED, "new", 1]), random.choice([{"salt": "AAAA"}, {"hidden": "00" * 32}]))
    if isinstance(holder, list):
        holder.insert(name, new)
    else:
        holder[random.choice(NAMES)] = new


def _swallow(_: Random, holder: Any, name: Any, other: Any) -> None:  # noqa: ANN401
    """Replace two parts by one `[redacted]`."""
    if name != other:
        digest = digest_of([holder[name], holder[other]])
        holder[name] = Cell(REDACTED, {"hidden": digest})
        del holder[other]


def _move(_: Random, holder: Any, name: Any, other: Any) -> None:  # noqa: ANN401
    """Move a part into its neighbour."""
    if name != other and isinstance(holder[other], dict | list):
        part = holder[name]
        if isinstance(holder[other], list):
            holder[other].append(part)
        else:
            holder[other]["moved"] = part
        del holder[name]


def _falsify(random: Random, holder: Any, name: Any, __: Any) -> None:  # noqa: ANN401
    if isinstance(holder[name], Cell):
        holder[name] = Cell(random.choice(["yes", "no", 0, 1, True, None, [], {}]), holder[name].proof)


def _resalt(random: Random, holder: Any, name: Any, other: Any) -> None:  # noqa: ANN401
    """Replace the proof of a field by another salt, by its digest, or by the form of older versions."""
    cell, donor = holder[name], holder[other]
    if isinstance(cell, Cell):
        digest = digest_of(cell)
        proofs: list[Any] = [{"salt": "AAAA"}, {"hidden": digest}, {"omitted": digest}, {"cut": "true"}, {}]
        proofs += [{"salt": "", "hidden": digest}, donor.proof if isinstance(donor, Cell) else {"hidden": "00"}]
        cell.proof = dict(random.choice(proofs))


CHANGES = (_remove, _hide, _hide_wordlessly, _swap, _repeat, _rename, _insert, _swallow, _move, _falsify, _resalt)


def change_proof(random: Random, copy: dict[str, Any]) -> None:
    """Change the proof of a record, or the members that no seal covers."""
    proof = copy[MEMBER]
    fields = proof["fields"]
    place = random.randrange(len(fields))
    match random.randrange(8):
        case 0:
            del fields[place]
        case 1:
            fields.insert(place, random.choice([{"omitted": "00" * 32}, {"cut": True}, {"salt": "AAAA"}, fields[0]]))
        case 2:
            random.shuffle(fields)
        case 3:
            del proof[random.choice([*proof])]
        case 4:
            proof[random.choice(["more", "files", "checks", "session"])] = random.choice(["x", None, [], 5])
        case 5:
            proof["entries"] = random.choice([[], proof["entries"] * 2])
        case 6:
            copy[random.choice(["created", "vcs", "recording-agent", "redacted", "more"])] = "forged"
        case _:
            copy.pop(random.choice([*copy]))
