"""`pollux archive seal` and `prove`, `pollux verify --seal`, `pollux record redact`, as users call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_verify import CHILD, LOG, MARKER, archived_home, content_of, damage, grown, synced
from tests.cli.running import Runner
from tests.redaction.samples import samples

from pollux.archive.lock import WriterLock
from pollux.cli import output
from pollux.cli.archive import _print_seal
from pollux.cli.context import open_context
from pollux.cli.record import print_verdict
from pollux.exports import vac
from pollux.library.config import keys_folder
from pollux.library.records import complete_record, record_maker
from pollux.proofs import seal as sealing
from pollux.proofs.commitment import Salts, commitment
from pollux.proofs.seal import PendingEntries, Seal, SealOutcome
from pollux.proofs.verdict import Verdict


@pytest.fixture
def place(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an archive; there is a key, and the working folder is empty."""
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run("keys", "create")
    return archive


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Simulate another machine, which has no archive, keys or home, only a public key."""
    (Path.cwd() / "mara.pub").write_bytes((keys_folder() / "default.pub").read_bytes())
    for name, folder in (("POLLUX_ARCHIVE", "other.db"), ("POLLUX_KEYS", "no-keys"), ("POLLUX_HOME", "no-home")):
        monkeypatch.setenv(name, str(tmp_path / folder))


def test_sealed_and_verified(run: Runner, place: Path, tmp_path: Path) -> None:
    first = run("archive", "seal")
    assert first.status == 0
    assert first.out.startswith("seal     1\nat       2026-11-15T12:00:00.000Z\nentries  ")
    assert all(len(line) <= 80 for line in first.out.splitlines())
    assert "Store a copy elsewhere" in first.err
    assert "3 new sessions" in first.err
    assert "Nothing is new since seal 1" in run("archive", "seal").err
    grown(tmp_path / "home", LOG, builders.log(builders.user("u8", "more", second=50)))
    second = run("archive", "seal", "--json").json
    assert (second["schema"], second["number"], second["new"]) == ("pollux.sealed/1", 2, True)
    assert (second["files"], second["sessions"], second["problems"]) == (1, 1, [])
    good = run("verify", "--seal")
    assert (good.status, "everything is as it was sealed" in good.err) == (0, True)
    assert "A seal covers bytes: the facts (titles, counts, tokens) were not compared" in good.err
    found = run("verify", "--seal", "--json").json
    assert (found["schema"], found["kind"], found["ok"], found["facts"]["seal"]) == (
        *("pollux.verdict/1", "archive"),
        *(True, "2"),
    )
    assert run("verify").status == 0
    del place


def test_tampering_is_named(run: Runner, place: Path) -> None:
    run("archive", "seal")
    damage(place, "UPDATE segments SET data = x'00' WHERE id = 1", "DELETE FROM files WHERE path = 'projects.json'")
    bad = run("verify", "--seal")
    assert bad.status == 1
    assert "cannot be decompressed" in bad.out
    assert "not everything is as it was sealed" in bad.err


def test_copy_of_the_seal_is_checked(run: Runner, place: Path) -> None:
    assert run("archive", "seal", "-o", "seal.cbor").status == 0
    assert run("archive", "seal", "-o", "full.cbor", "--entries").status == 0
    again = run("archive", "seal", "-o", "again.cbor")  # nothing is new, and yet it is written
    assert again.err.startswith(f"again.cbor: {Path('again.cbor').stat().st_size} bytes.\nNothing is new since seal 1")
    small, full = Path("seal.cbor").read_bytes(), Path("full.cbor").read_bytes()
    assert len(small) < 500
    assert b"webapp" not in small
    assert b"webapp" in full
    for name in ("seal.cbor", "full.cbor"):
        assert run("verify", "--seal", name).status == 0
        assert "the seal is valid" in run("record", "verify", name).err
    damage(place, "DELETE FROM seals", "DELETE FROM sealed")
    bad = run("verify", "--seal", "seal.cbor")
    assert (bad.status, "chain: the given seal 1 is not in the archive: it has no seal." in bad.out) == (1, True)
    assert "has no seal yet" in run("verify", "--seal").err


def test_missing_public_key_is_reported(run: Runner, place: Path) -> None:
    run("archive", "seal")
    (keys_folder() / "default.pub").rename("mara.pub")
    (keys_folder() / "default.pem").unlink()
    bad = run("verify", "--seal")
    assert (bad.status, "the unknown key" in bad.out) == (1, True)
    assert run("verify", "--seal", "--key", "mara.pub").status == 0
    del place


def test_proof_is_verified_on_another_machine(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("archive", "seal")
    assert run("archive", "prove", builders.SESSION, "-o", "proof.json").status == 0
    Path("session.jsonl").write_bytes(content_of(place, LOG)[0])
    elsewhere(monkeypatch, tmp_path)
    good = run("record", "verify", "proof.json", "--file", "session.jsonl", "--key", "mara.pub")
    assert (good.status, "the proof is valid" in good.err) == (0, True)
    assert f"the file is {LOG} as it was sealed" in good.err
    assert f"  {LOG}\n" in good.out
    rows = run("record", "verify", "proof.json", "--key", "mara.pub", "--json").json["files"]
    assert LOG in [row["path"] for row in rows]
    Path("session.jsonl").write_bytes(b"x" + content_of(place, LOG)[0][1:])
    assert run("record", "verify", "proof.json", "--file", "session.jsonl", "--key", "mara.pub").status == 1
    assert not (tmp_path / "other.db").exists()


def test_redacted_record_is_verified_on_another_machine(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("archive", "seal")
    assert MARKER in run("record", "create", builders.SESSION).out
    done = run("record", "redact", builders.SESSION, "--hide-text", MARKER[:9], "--hide", "input", "-o", "red.json")
    assert done.status == 0
    assert run("record", "sign", "red.json").status == 0
    assert MARKER not in Path("red.json").read_text("utf-8")
    elsewhere(monkeypatch, tmp_path)
    good = run("record", "verify", "red.json", "--key", "mara.pub")
    assert (good.status, "the redacted record is valid" in good.err) == (0, True)
    assert run("record", "verify", "red.sig.cbor", "--key", "mara.pub").status == 0
    value = json.loads(Path("red.json").read_bytes())
    value["session"]["entries"][0]["type"] = "assistant"
    Path("forged.json").write_text(json.dumps(value))
    bad = run("record", "verify", "forged.json", "--key", "mara.pub")
    assert (bad.status, bad.out.splitlines()[0]) == (
        *(1, "field: it shows something else than was sealed: /session/entries/0/type."),
    )
    del place


def test_unproven_statements_are_listed(run: Runner, place: Path) -> None:
    run("archive", "seal", "--issuer", "mailto:mara@example.org")
    run("record", "redact", builders.SESSION, "--hide", "input", "-o", "red.json")
    value = json.loads(Path("red.json").read_bytes())
    assert "recording-agent" not in value
    good = run("record", "verify", "red.json")
    assert good.err == "red.json: the redacted record is valid.\n"
    assert "seal 1 by  default.pub (your own key), claiming to be 'mailto:mara@example.org'\n" in good.out
    Path("red.json").write_text(json.dumps(value | {"created": "1999-01-01T00:00:00Z", "vcs": {"type": "git"}}))
    found = run("record", "verify", "red.json")
    assert found.status == 0
    assert found.err.splitlines() == [
        "Nothing proves these members, which no seal covers and anyone can have set: created, vcs.",
        "red.json: the redacted record is valid, except for the unproven statements above.",
    ]
    rows = run("record", "verify", "red.json", "--json").json
    assert (rows["ok"], rows["unproven"]) == (True, ["created", "vcs"])
    assert [(one["of"], one["trust"], one["issuer_proven"]) for one in rows["signers"]] == [("seal 1", "own", False)]
    misused = run("record", "verify", "red.json", "--file", "red.json")
    assert (misused.status, "leave --file out" in misused.err) == (2, True)
    del place


def test_signer_of_the_seal_is_named(run: Runner, place: Path, tmp_path: Path) -> None:
    run("archive", "seal")
    run("keys", "create", "second")
    grown(tmp_path / "home", LOG, builders.log(builders.user("u8", "more", second=50)))
    run("archive", "seal", "--key", "second")
    grown(tmp_path / "home", LOG, builders.log(builders.user("u9", "more", second=60)))
    run("archive", "seal", "--key", "second")
    found = run("verify", "--seal", "--json").json
    assert [(one["of"], Path(one["key_file"]).name, one["verified"]) for one in found["signers"]] == [
        ("seal 1", "default.pub", True),
        ("seal 3", "second.pub", True),
    ]
    del place


def test_secrets_are_replaced_by_hashes(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample, *_) = samples("github-token")
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    words = builders.user("u8", [{"text": f"push with {sample.secret}"}, picture], second=50)
    asked = builders.call("c9", args={"command": f"echo {sample.secret}", "where": "/home/mara/src/webapp"})
    answer = builders.gemini("g8", "pushed", second=51, tokens=builders.tokens(8), toolCalls=[asked])
    grown(tmp_path / "home", LOG, builders.log(words, answer))
    run("archive", "seal")
    done = run("record", "redact", builders.SESSION, "--secrets", "-o", "red.json")
    assert done.status == 0
    assert "Replaced 2 values that contained secrets by salted hashes: 2 × GitHub token" in done.err
    assert "Not searched: 1 × image/png attachment. Check them yourself." in done.err
    told = Path("red.json").read_text("utf-8")
    assert sample.secret not in told
    assert "/home/mara/src/webapp" in told, "what stands beside is proven as before"
    assert MARKER in told
    elsewhere(monkeypatch, tmp_path)
    good = run("record", "verify", "red.json", "--key", "mara.pub")
    assert (good.status, "the redacted record is valid" in good.err) == (0, True)
    assert told.count('"[redacted]"') == 2
    del place


def test_record_without_secrets_is_unchanged(run: Runner, place: Path) -> None:
    run("archive", "seal")
    done = run("record", "redact", builders.SESSION, "--secrets")
    assert (done.status, done.err) == (0, "No secrets found.\n")
    assert MARKER in done.out
    assert "[redacted]" not in done.out
    both = run("record", "redact", builders.SESSION, "--secrets", "--hide-text", MARKER)
    assert MARKER not in both.out
    del place


def test_numbers_are_not_hidden_by_name(run: Runner, place: Path) -> None:
    run("archive", "seal")
    value = json.loads(run("record", "redact", builders.SESSION, "--hide", "input", "--hide", "output").out)
    told = json.dumps(value["session"]["entries"])
    assert '"input": "[redacted]"' in told
    assert '"output": "[redacted]"' in told
    assert '"input": 1,' in told, "of the tokens"
    pointed = run("record", "redact", builders.SESSION, "--hide", "/session/entries/*/token-usage/input").out
    assert '"input":"[redacted]"' in pointed
    del place


def test_record_that_differs_from_the_seal_is_refused(run: Runner, place: Path, tmp_path: Path) -> None:
    run("archive", "seal")
    grown(tmp_path / "home", LOG, builders.log(builders.user("u8", "more", second=50)))
    bad = run("record", "redact", builders.SESSION, "--hide", "input")
    assert (bad.status, f"Run `pollux archive seal {builders.SESSION}`" in bad.err) == (1, True)
    assert run("archive", "seal", builders.SESSION).status == 0
    assert run("record", "redact", builders.SESSION, "--hide", "input").status == 0
    assert run("record", "redact", CHILD, "--hide", "input").status == 0, "a subagent too"
    del place


def test_newer_seal_is_proven_consistent(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("archive", "seal", "-o", "old.cbor")
    grown(tmp_path / "home", LOG, builders.log(builders.user("u8", "more", second=50)))
    run("archive", "seal")
    assert run("archive", "prove", "--consistent-with", "old.cbor", "-o", "more.json").status == 0
    elsewhere(monkeypatch, tmp_path)
    good = run("record", "verify", "more.json", "--file", "old.cbor", "--key", "mara.pub")
    assert (good.status, good.err) == (0, "more.json: the continuation is valid.\n")
    vague = run("record", "verify", "more.json", "--key", "mara.pub")
    assert "Nothing proves that seal 1 is the one that you have; pass your copy of it with --file." in vague.err
    del place


def test_forgotten_files_are_listed(run: Runner, place: Path) -> None:
    run("archive", "seal")
    run("forget", builders.SESSION, "--yes")
    good = run("verify", "--seal")
    assert good.status == 0
    assert "forgotten by you on 2026-11-15, which no seal confirms yet" in good.err
    assert "was forgotten since the last seal" in run("archive", "seal").err
    assert "which a seal confirms" in run("verify", "--seal").err
    del place


def test_seals_move_to_a_new_archive(run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("archive", "seal")
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "new.db"))
    monkeypatch.delenv("POLLUX_HOME")
    assert "continues the chain of 1 seal: your key signed it" in run("archive", "import", str(place)).err
    assert run("verify", "--seal").status == 0
    hidden = ("record", "redact", builders.SESSION, "--hide", "input")
    redacted = run(*hidden)  # the salts are made from another secret
    assert (redacted.status, "`pollux archive seal" in redacted.err) == (1, True)
    assert run("archive", "seal", builders.SESSION).status == 0
    assert run(*hidden).status == 0
    synced(tmp_path / "third.db", tmp_path / "home")
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "third.db"))
    run("archive", "seal")
    assert "1 seal stored separately from those of this archive" in run("archive", "import", str(place)).err


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (("verify", "--seal"), 1, "Run `pollux archive seal` to make one"),
        (("verify", "--seal", "nothing"), 1, "Cannot read nothing"),
        (("verify", "--seal", "odd"), 1, "odd is no seal. This is not a COSE_Sign1 envelope"),
        (("verify", "--seal", "--repair"), 2, "--repair"),
        (("archive", "seal", "--entries"), 2, "name one with -o"),
        (("archive", "seal", "--no-archive"), 2, "needs the archive"),
        (("archive", "seal", "nosuch"), 1, "No session matches 'nosuch'"),
        (("archive", "seal", "-o", "no/such/place"), 1, "cannot be written"),
        (("archive", "prove"), 2, "an older seal with --consistent-with"),
        (("archive", "prove", "latest"), 1, "is not sealed yet"),
        (("record", "create", "latest", "-o", "no/such/place"), 1, "cannot be written"),
        (("archive", "prove", "latest", "--no-archive"), 2, "leave --no-archive"),
        (("archive", "prove", "--consistent-with", "odd"), 1, "is no seal"),
        (("record", "redact", "latest"), 2, "Nothing to hide. Pass --secrets"),
        (("record", "redact", "latest", "--hide-text", "("), 2, "Invalid regular expression"),
        (("record", "redact", "latest", "--hide", "x", "--no-archive"), 2, "leave --no-archive"),
        (("record", "redact", "latest", "--hide", "x"), 1, "has changed since it was sealed"),
    ],
)
def test_wrong_usage_is_reported(run: Runner, place: Path, args: tuple[str, ...], status: int, words: str) -> None:
    Path("odd").write_text("hello")
    found = run(*args)
    assert (found.status, words in found.err) == (status, True), found.err
    del place


def test_unwritable_proof_is_reported(run: Runner, place: Path) -> None:
    run("archive", "seal")
    found = run("archive", "prove", "latest", "-o", "no/such/place")
    assert (found.status, "cannot be written" in found.err) == (1, True)
    del place


def test_sealing_needs_the_writer_lock(run: Runner, place: Path) -> None:
    lock = WriterLock(place)
    assert lock.take()
    found = run("archive", "seal")
    lock.release()
    assert (found.status, "cannot be changed now" in found.err) == (1, True)


def test_the_profile_has_one_name() -> None:
    assert sealing.PROFILE == vac.PROFILE


def test_empty_archive_is_not_sealed(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nobody" / ".gemini" / "tmp").mkdir(parents=True)
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "new.db"))
    run("keys", "create")
    assert "there is nothing to seal" in run("archive", "seal", "-o", str(tmp_path / "seal.cbor")).err
    assert not (tmp_path / "seal.cbor").exists()
    assert run("archive", "seal", "--json").json["number"] is None


def test_seal_is_written_to_stdout(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr(output, "write", written.extend)
    assert run("archive", "seal", "-o", "-").status == 0
    Path("seal.cbor").write_bytes(b"".join(written))
    assert run("verify", "--seal", "seal.cbor").status == 0
    del place


@pytest.mark.parametrize("number", range(0, 23, 3))
def test_sealed_record_equals_the_exported_one(run: Runner, number: int) -> None:
    """Sealing reads the entries of a record one by one, redaction all at once."""
    assert run("sync").status in (0, 1)
    with open_context(no_archive=True).library as library, library.snapshot() as snapshot:
        by_id = {session.id: session for session in snapshot.sessions.load(None)}
        make = record_maker(snapshot, by_id, library.prices)
        id_ = list(by_id)[number]
        salts = Salts(b"x", id_)
        assert commitment(make(id_), salts) == commitment(complete_record(make(id_)), salts)


def test_long_lists_are_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(Verdict("archive", notes=[f"file {number} is forgotten" for number in range(12)]), "it")
    said = capsys.readouterr().err
    assert "… and 2 more; --json lists all of them." in said
    found = PendingEntries(forgotten=[f"file {number}" for number in range(12)])
    _print_seal(SealOutcome(Seal("", 1, "", 1, "", None), b"", found, is_new=True), "default", has_copy=True)
    assert "… and 2 more files" in capsys.readouterr().err


def test_imported_seals_are_checked_separately(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("archive", "seal")
    monkeypatch.setenv("POLLUX_KEYS", str(tmp_path / "my-keys"))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "mine.db"))
    run("keys", "create")
    found = run("archive", "import", str(place))
    assert "1 seal stored separately" in found.err
    unsealed = run("verify", "--seal")
    assert unsealed.status == 1
    assert "1 seal of an imported archive, not confirmed" in unsealed.err
    assert "has no seal yet" in unsealed.err
    assert run("archive", "seal").out.startswith("seal     1")
    good = run("verify", "--seal")
    assert good.status == 0
    assert "1 seal of an imported archive, not confirmed" in good.err
    assert [one for one in run("verify", "--seal", "--json").json["notes"] if "imported archive" in one]
