"""The query language: what each query means, and what is wrong with the others."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cpu_time import cpu_seconds

from pollux.errors import InvalidQueryError, PolluxError
from pollux.search.fields import FIELDS, PARTS, ValueKind, field_named, similar_field
from pollux.search.query import compile_regex, parse_query
from pollux.search.ranges import Bounds
from pollux.search.terms import (
    AllOf,
    AnyOf,
    FieldTest,
    Node,
    Not,
    Phrase,
    Query,
    Regex,
    Word,
    leaves,
    wanted_texts,
)

NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))
SECOND = 1_000_000


def parsed(text: str, *, is_typing: bool = False) -> Query:
    return parse_query(text, now=NOW, zone=UTC, is_typing=is_typing)


def outcome(text: str, *, is_typing: bool = False) -> Query | InvalidQueryError:
    try:
        return parsed(text, is_typing=is_typing)
    except InvalidQueryError as error:
        return error


def written(node: Node) -> str:
    """Write a tree with a bracket around every group."""
    match node:
        case Word(text, is_prefix):
            return f"{text}*" if is_prefix else text
        case Phrase(text):
            return f'"{text}"'
        case Regex(pattern, flags):
            escaped = pattern.replace("/", "\\/")
            return f"re:/{escaped}/{flags}"
        case FieldTest(name, values):
            quoted = [f'"{value}"' if " " in value else value for value in values]
            return f"{name}:{','.join(quoted)}"
        case Not(inner):
            return f"-{written(inner)}"
        case AnyOf(nodes):
            return f"({' OR '.join(map(written, nodes))})"
        case AllOf(nodes):
            return f"({' '.join(map(written, nodes))})"


def meaning(query: Query) -> str:
    return " ".join(map(written, query.node.nodes))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\u3000\n", ""),
        ("docker  compose", "docker compose"),
        ("连接\u3000超时", "连接 超时"),
        ('"no space left" disk', '"no space left" disk'),
        ('say"hello"', 'say"hello"'),
        ('"one two"three', '"one two" three'),
        ("a OR b c", "(a OR b) c"),
        ("a b OR c d", "a (b OR c) d"),
        ("a OR b OR c", "(a OR b OR c)"),
        ("a OR b -c", "(a OR b) -c"),
        ("(a b) OR c", "((a b) OR c)"),
        ("(a OR b) OR (c OR d)", "(a OR b OR c OR d)"),
        ("(a b) c", "a b c"),
        ("((a))", "a"),
        ("a -(b c)", "a -(b c)"),
        ("a -(b OR c)", "a -(b OR c)"),
        ("a (-b)", "a -b"),
        ("a or b", "a or b"),
        ("a AND b", "a AND b"),
        ("NEAR(a", "NEAR(a"),
        ("a -b", "a -b"),
        ('a -"b c"', 'a -"b c"'),
        ("a -in:output", "a -in:output"),
        ("a -re:/b/", "a -re:/b/"),
        ("git commit --no-verify", "git commit --no-verify"),
        ("a -verify", "a -verify"),
        ("well-known", "well-known"),
        ("a -.env", "a -.env"),
        ("conf*", "conf*"),
        ("getUser*", "getUser*"),
        ("v1.2*", "v1.2*"),
        ("超*", "超*"),
        ("f*o", "f*o"),
        ("foo**", "foo*"),
        ("std::vector", "std::vector"),
        ("http://x file://y", "http://x file://y"),
        (r"C:\x dir:\x", r"C:\x dir:\x"),
        ("12:30", "12:30"),
        ("TypeError: x", "TypeError: x"),
        ("in: x", "in: x"),
        ("in::x", "in::x"),
        ("foo:bar", "foo:bar"),
        ("host:8080 code:E0308 no:1 mode", "host:8080 code:E0308 no:1 mode"),
        ("error[E0308]", "error[E0308]"),
        ("main() f(a)", "main() f(a)"),
        ("(main() f(a))", "main() f(a)"),
        ("(f(a) OR b)", "(f(a) OR b)"),
        ("a)", "a)"),
        ("$HOME @src/main.rs #123 ^x {y}", "$HOME @src/main.rs #123 ^x {y}"),
        ("🚀", "🚀"),
        ("in:prompt x", "in:prompt x"),
        ("IN:Prompt,ANSWER x", "in:prompt,answer x"),
        ("(in:prompt x) OR y", "((in:prompt x) OR y)"),
        ("(in:)", "in:"),
        ("project:webapp", "project:webapp"),
        ('project:"my app",b', 'project:"my app",b'),
        ("dir:/home/mara", "dir:/home/mara"),
        (r'dir:"C:\x y"', r'dir:"C:\x y"'),
        ("file:src/*.ts,", "file:src/*.ts"),
        ("file:f(a).ts", "file:f(a).ts"),
        ("(file:a)", "file:a"),
        ('cmd:"git push"', 'cmd:"git push"'),
        ("since:7d until:yesterday", "after:7d before:yesterday"),
        ("has:image,diff", "(has:image OR has:diff)"),
        ("re:/time[ -]?out/i x", "re:/time[ -]?out/i x"),
        (r"re:/a\/b/", r"re:/a\/b/"),
        ("re:/a/IMI", "re:/a/im"),
        ("Re: your mail", "Re: your mail"),
        ("-project:x", "-project:x"),
        ("-a project:x", "-a project:x"),
        ("a\0b", "a b"),
    ],
)
def test_readings(text: str, expected: str) -> None:
    query = parsed(text)
    assert meaning(query) == expected
    assert query.text == text
    assert query.left_out == ()
    assert query.is_empty == (not expected)


@pytest.mark.parametrize(
    ("text", "expected", "left_out"),
    [
        ("* a", "a", ["*"]),
        ("a - b", "a b", ["-"]),
        ("a -", "a", ["-"]),
        ("OR a", "a", ["OR"]),
        ("a OR", "a", ["OR"]),
        ("a OR OR b", "(a OR b)", ["OR"]),
        ("(a OR) b", "a b", ["OR"]),
        ('a "" b', "a b", ['""']),
        ("a () b", "a b", ["()"]),
        ("-> a", "a", ["->"]),
        ("a && b", "a b", ["&&"]),
        ('a "..."', "a", ['"..."']),
        ("/* x", "x", ["/*"]),
        ("a … b 。", "a b", ["…", "。"]),
        ("\u200b a", "a", ["\u200b"]),
    ],
)
def test_what_cannot_be_searched_is_left_out_and_named(text: str, expected: str, left_out: list[str]) -> None:
    query = parsed(text)
    assert meaning(query) == expected
    assert [*query.left_out] == left_out


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        (
            "x projct:y",
            2,
            'there is no field "projct:". Did you mean "project:"? To search for this text, put it in quotation marks.',
        ),
        ("files:a", 0, 'there is no field "files:". Did you mean "file:"? To search'),
        ("Modle:a", 0, 'there is no field "Modle:". Did you mean "model:"? To search'),
        ("in:prompts", 0, '"in:" has no value "prompts". Did you mean "in:prompt"? To search'),
        ("in:x", 0, '"in:" has no value "x". Use prompt, answer, thoughts, args, output or notice. To search'),
        (
            "in:nowhere",
            0,
            '"in:" has no value "nowhere". Use prompt, answer, thoughts, args, output or notice. To search',
        ),
        ("status:canceled", 0, '"status:" has no value "canceled". Did you mean "status:cancelled"? To search'),
        ("last:soon", 0, '"last:" cannot use "soon". Write an age such as 30min, 12h, 7d, 2w, 3m or 1y. To search'),
        ("last:2026-01-01", 0, '"last:" cannot use "2026-01-01". Write an age'),
        ("on:2026-13", 0, '"on:" cannot use "2026-13". Write a day, month or year such as 2026-01-31,'),
        ("a before:>7d", 2, '"before:" cannot use ">7d". Write a day'),
        ("cost:cheap", 0, '"cost:" cannot use "cheap". Write a number of dollars such as >1, <=0.50 or 0.5..2.'),
        ("tokens:9..5", 0, '"tokens:" cannot use "9..5". Write a number such as'),
        ("tokens:..", 0, '"tokens:" cannot use "..". Write a number'),
        ('project:""', 0, '"project:" cannot use """". Write a name such as webapp, a path, or .'),
        ("tool:*", 0, '"tool:" cannot use "*". Write a part of a tool'),
        ('x "unbalanced', 2, "the quotation mark has no end. Add the second one, or leave out the first."),
        ('file:"a', 5, "the quotation mark has no end."),
        ("a (b c", 2, "the bracket has no end. Close it with a bracket. To search for a bracket itself,"),
        ("re:abc", 0, '"re:" has no slash. Write the pattern between slashes, as in re:/time[ -]?out/i.'),
        ("re:/abc", 0, 'the pattern of "re:" has no end. Close it with a slash; write one inside as \\/.'),
        ("re:/usr/bin", 8, 'a regular expression has no flag "b". Use i to ignore case,'),
        ("re:/etc/*.conf", 8, "the pattern ended at the slash before. Write a space after it."),
        ("x re:/a(b/", 9, "this is not a regular expression (missing )). Correct it; write \\ before"),
        ("re:/[/", 5, "this is not a regular expression (unterminated character set)."),
        ("-a", 0, 'it has only parts with "-". Add a word that the text has to contain.'),
        ("-a -project:x", 0, 'it has only parts with "-".'),
        ("-a in:prompt", 0, 'it has only parts with "-".'),
        ("a OR -b", 5, 'one side of "OR" has only parts with "-". Add a word to it, or leave it out.'),
        ("a fo*", 2, '"fo*" would match too many words. Write at least 3 letters before the *.'),
        ("a" * 10_000, 2_000, "it is too long (10,000 characters; the limit is 2,000). Shorten it."),
        ("ab " * 65, 192, "it has more than 64 words. Use fewer."),
        (f"id:{','.join(map(str, range(65)))}", 0, "it has more than 64 words."),
        (f'"{"a " * 40}"', 0, "a phrase of 40 words is too long; the limit is 32. Search for a part of it."),
        ("a." * 40, 0, "a phrase of 40 words is too long"),
        ("超" * 300, 0, "a phrase of 38 words is too long"),
        ("(" * 300, 16, "more than 16 brackets are inside each other. Use fewer."),
    ],
)
def test_errors_name_the_place_and_the_next_step(text: str, position: int, message: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        parsed(text)
    assert str(caught.value).startswith(f"Invalid query at character {position + 1}: {message}")
    assert str(caught.value).endswith((".", "?"))
    assert caught.value.position == position
    assert caught.value.query == text
    assert caught.value.status == 2
    assert isinstance(caught.value, PolluxError)


def test_errors_show_a_long_or_hostile_value_safely() -> None:
    with pytest.raises(InvalidQueryError) as caught:
        parsed("cost:\x1b[31m" + "x" * 500)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "expected", "left_out"),
    [
        ("", "", []),
        ("con", "con*", []),
        ("docker con", "docker con*", []),
        ("docker con ", "docker con", []),
        ("docker co", "docker", ["co"]),
        ("co", "co", []),
        ("co ", "co", []),
        ("超", "超*", []),
        ("a -con", "a -con", []),
        ("-con", "", ["-con"]),
        ('a "b c', 'a "b c"', []),
        ("a (b OR cde", "a (b OR cde*)", []),
        ("a OR", "a", ["OR"]),
        ("a project:", "a", ["project:"]),
        ("a -project:", "a", ["project:"]),
        ("a in:pro", "a", ["in:pro"]),
        ("a in:pro b", None, []),
        ("a project:we", "a project:we", []),
        ('a project:"my ap', 'a project:"my ap"', []),
        ("a cost:>", "a", ["cost:>"]),
        ("a on:2026-1", "a", ["on:2026-1"]),
        ("a re:/b(", "a", ["re:/b("]),
        ("a re:/b c", "a", ["re:/b c"]),
        ("fo* x", "fo", ["x"]),
        ("projct:", "projct:*", []),
        ("projct:x", None, []),
    ],
)
def test_unfinished_queries(text: str, expected: str | None, left_out: list[str]) -> None:
    if expected is None:
        with pytest.raises(InvalidQueryError):
            parsed(text, is_typing=True)
        return
    query = parsed(text, is_typing=True)
    assert meaning(query) == expected
    assert [*query.left_out] == left_out


# Numbers and times


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("tokens:5", 5, 6),
        ("tokens:>5", 6, None),
        ("tokens:>=5", 5, None),
        ("tokens:<5", None, 5),
        ("tokens:<=5", None, 6),
        ("tokens:=5", 5, 6),
        ("tokens:2..5", 2, 6),
        ("tokens:2..", 2, None),
        ("tokens:..5", None, 6),
        ("tokens:>0.5", 1, None),
        ("tokens:>=0.5", 1, None),
        ("tokens:<0.5", None, 1),
        ("tokens:<=0.5", None, 1),
        ("tokens:1.5k..2M", 1_500, 2_000_001),
        ("tokens:>999999999999999B", (1 << 63) - 1, None),
        ("cost:>1", 1_000_000_001, None),
        ("cost:>=$.50", 500_000_000, None),
        ("cost:0", 0, 1),
        ("cost:0.5..2", 500_000_000, 2_000_000_001),
    ],
)
def test_numbers(text: str, low: int | None, high: int | None) -> None:
    (test,) = parsed(text).node.nodes
    assert isinstance(test, FieldTest)
    assert test.bounds == (Bounds(low, high),)


def moment(*numbers: int) -> int:
    return int(datetime(*numbers, tzinfo=UTC).timestamp()) * SECOND  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("on:2026", moment(2026, 1, 1), moment(2027, 1, 1)),
        ("on:2026-01", moment(2026, 1, 1), moment(2026, 2, 1)),
        ("on:2026-12", moment(2026, 12, 1), moment(2027, 1, 1)),
        ("on:2024-02-29", moment(2024, 2, 29), moment(2024, 3, 1)),
        ("on:today", moment(2026, 11, 18), moment(2026, 11, 19)),
        ("on:Yesterday", moment(2026, 11, 17), moment(2026, 11, 18)),
        ("on:7d", moment(2026, 11, 11), moment(2026, 11, 12)),
        ("on:2026-11-01T14", moment(2026, 11, 1, 14), moment(2026, 11, 1, 15)),
        ("on:2026-11-01T14:30", moment(2026, 11, 1, 14, 30), moment(2026, 11, 1, 14, 31)),
        ('on:"2026-11-01 14:30:05"', moment(2026, 11, 1, 14, 30, 5), moment(2026, 11, 1, 14, 30, 6)),
        ("on:2026-11-01T14:30+02:00", moment(2026, 11, 1, 12, 30), moment(2026, 11, 1, 12, 31)),
        ("on:>2026-01", moment(2026, 2, 1), None),
        ("on:>=2026-01", moment(2026, 1, 1), None),
        ("on:<2026-01", None, moment(2026, 1, 1)),
        ("on:<=2026-01", None, moment(2026, 2, 1)),
        ("on:2026-01..2026-02", moment(2026, 1, 1), moment(2026, 3, 1)),
        ("on:2026-01..", moment(2026, 1, 1), None),
        ('on:"2026-01-01 10:00".."2026-01-01 11:00"', moment(2026, 1, 1, 10), moment(2026, 1, 1, 11, 1)),
        ("after:2026-01", moment(2026, 1, 1), None),
        ("after:7d", moment(2026, 11, 11, 12, 30), None),
        ("before:2026-01-31", None, moment(2026, 1, 31)),
        ("before:12h", None, moment(2026, 11, 18, 0, 30)),
        ("last:7d", moment(2026, 11, 11, 12, 30), None),
        ("last:30min", moment(2026, 11, 18, 12), None),
    ],
)
def test_times(text: str, low: int | None, high: int | None) -> None:
    (test,) = parsed(text).node.nodes
    assert isinstance(test, FieldTest)
    assert test.bounds == (Bounds(low, high),)


def test_days_begin_where_the_user_is() -> None:
    (test,) = parse_query("on:2026-11-01", now=NOW, zone=TOKYO).node.nodes
    assert isinstance(test, FieldTest)
    assert test.bounds == (Bounds(moment(2026, 10, 31, 15), moment(2026, 11, 1, 15)),)


def test_a_test_may_have_several_ranges() -> None:
    (test,) = parsed("cost:<1,5..6").node.nodes
    assert isinstance(test, FieldTest)
    assert test.bounds == (Bounds(None, 1_000_000_000), Bounds(5_000_000_000, 6_000_000_001))


@pytest.mark.parametrize(
    "test",
    [
        *("on:0000", "on:9999", "on:9999-12-31", "on:2026-00", "on:2026-02-30", "on:99999999999d", "on:soon..2026"),
        *("on:2026-02..2026-01", "on:", "on:>", "on:>>2026", "on:²⁰²⁶"),
        *(
            "after:0000",
            "after:99999999999d",
            "before:soon",
            "before:2026-01..2026-02",
            "last:99999999999d",
            "last:-7d",
        ),
        *(
            "last:" + "9" * 1000 + "d",
            "cost:1e9",
            "cost:-1",
            "cost:²",
            "cost:" + "9" * 1000,
            "cost:1.1.1",
            "tokens:1..2..3",
        ),
    ],
)
def test_impossible_times_and_numbers_are_errors(test: str) -> None:
    with pytest.raises(InvalidQueryError):
        parsed(f"{test}," if test == "on:" else test)


# Trees


def test_positions_are_those_of_the_typed_text() -> None:
    text = 'one "two three" -four in:prompt (re:/six/ OR seven*)'
    query = parsed(text)
    starts = [(leaf.at, text[leaf.at :].split(maxsplit=1)[0]) for leaf, _ in leaves(query.node)]
    assert [start for _, start in starts] == ["one", '"two', "four", "in:prompt", "re:/six/", "seven*)"]
    assert isinstance(query.node.nodes[2], Not)
    assert query.node.nodes[2].at == text.index("-four")


def test_only_wanted_texts_are_highlighted() -> None:
    query = parsed('a a "b c" -d -(e OR f) in:prompt (ghi* OR a) re:/h/ project:x')
    assert wanted_texts(query) == (Word("a"), Phrase("b c"), Word("ghi", is_prefix=True), Regex("h"))


def test_regular_expressions_use_their_flags() -> None:
    (node,) = parsed("re:/^time.out$/ims").node.nodes
    assert isinstance(node, Regex)
    pattern = compile_regex(node)
    assert pattern.search("x\nTIME\nOUT\ny")
    (plain,) = parsed("re:/^time.out$/").node.nodes
    assert isinstance(plain, Regex)
    assert not compile_regex(plain).search("TIME OUT")
    assert not compile_regex(plain).search("time\nout")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "a{1000000}",
            "a{2,100000000}",
            "(?:a{1000}){1000}",
            "((((a{9}){9}){9}){9}){9}",
            "(){30000}",
            "[(]{1000000}",
            r"\({1000000}",
        ),
        *(
            "(?:a{1000})(?#no){1000}",
            "(?x)(?:a{1000}) # no\n{1000}",
            "(?:a{300}|b){300}",
            "(a{1000})(?i){1000}",
            "(?:(a)((?1){30000})){9}",
        ),
        *("(?:a{1000}) {1000}", "[[]a{1000000}", "(?V1)[[a]b]{1000000}", "a{99999999999999999999}", "[^]]{1000000}"),
    ],
)
def test_a_pattern_that_would_need_too_much_memory_is_refused(pattern: str) -> None:
    with pytest.raises(
        InvalidQueryError, match=r"at character 5: this regular expression is too large\. Use a simpler"
    ):
        parsed(f"re:/{pattern}/")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "a{1000}",
            "[{5}]{3}",
        ),
        *(r"\{1000000}", "a{,3}", "{", "a{", "x{0}", "(?x) a{3} b{4}", "(){3}", "(?:é{20}){20}"),
    ],
)
def test_usual_repetitions_are_accepted(pattern: str) -> None:
    (node,) = parsed(f"re:/{pattern}/").node.nodes
    assert isinstance(node, Regex)
    assert node.pattern == pattern


def test_the_regex_library_is_loaded_only_for_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    assert meaning(parsed('a "d e" file:*.ts')) == 'a "d e" file:*.ts'
    with pytest.raises(ImportError):
        parsed("re:/never seen before/")


WORDS = st.text("abcXYZ019_.é超", min_size=1, max_size=6).filter(
    lambda text: text not in {"OR", "."} and any(char.isalnum() for char in text)
)
LEAVES = st.one_of(
    WORDS.map(Word),
    WORDS.map(lambda text: Word(f"pre{text}", is_prefix=True)),
    st.lists(WORDS, min_size=1, max_size=3).map(lambda words: Phrase(" ".join(words))),
    st.lists(WORDS, min_size=1, max_size=3).map(lambda values: FieldTest("file", tuple(values))),
    st.sampled_from(PARTS).map(lambda part: FieldTest("in", (part,))),
    st.sampled_from(["a b", "a/b", "[)(]", "a|b", r"\"\d"]).map(Regex),
)


def groups(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(nodes, min_size=2, max_size=4).map(tuple)
    sides = st.lists(nodes.filter(lambda node: not isinstance(node, Not | AnyOf)), min_size=2, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda inner: AllOf(tuple(flat(inner)))),
        sides.map(AnyOf),
        nodes.filter(lambda node: not isinstance(node, Not)).map(Not),
    )


def flat(nodes: tuple[Node, ...]) -> list[Node]:
    return [inner for node in nodes for inner in (node.nodes if isinstance(node, AllOf) else (node,))]


def placeless(node: Node) -> object:
    match node:
        case AnyOf(nodes) | AllOf(nodes):
            return type(node).__name__, [placeless(inner) for inner in nodes]
        case Not(inner):
            return "Not", placeless(inner)
        case Word(text, is_prefix):
            return text, is_prefix
        case Phrase(text):
            return [text]
        case Regex(pattern, flags):
            return pattern, flags
        case FieldTest(name, values):
            return name, values


@given(st.recursive(LEAVES, groups, max_leaves=12))
@settings(max_examples=400)
def test_a_written_tree_is_read_back(tree: Node) -> None:
    nodes = flat((tree,))
    text = f"anchor {' '.join(map(written, nodes))}"
    query = outcome(text)
    if isinstance(query, InvalidQueryError):
        assert 'one side of "OR" has only parts with "-"' in str(query)
        return
    assert [placeless(node) for node in query.node.nodes[1:]] == [placeless(node) for node in nodes], text
    assert query.left_out == ()


PIECES = st.sampled_from(
    [
        *(
            '"',
            "(",
            ")",
            "-",
            "*",
            " ",
            "OR",
            ":",
            ",",
            "..",
            ">",
            "<",
            "=",
            "/",
            "\\",
            "re:/",
            "/i",
            "\n",
            "\0",
            "\ud800",
        ),
        *(
            "foo",
            "超时",
            "é",
            "🚀",
            "7d",
            "2026-01",
            "9" * 20,
            "1.5k",
            "[",
            "{",
            "+",
            "|",
            "?",
            "$",
            "%",
            "_",
            "'",
            ";",
        ),
        *(f"{field.name}:" for field in FIELDS),
        *(choice for field in FIELDS for choice in field.choices),
        *("projct:", "std::", "http://", "C:\\", "NEAR(", "AND", "''; DROP TABLE sessions --"),
    ]
)
STRINGS = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=60)


@given(texts=st.lists(STRINGS, min_size=50, max_size=50), is_typing=st.booleans())
@settings(max_examples=200)
@example(
    texts=["a" * 10_000, "(" * 300, '"' + "a " * 5_000, "re:/(a+)+$/", "-" * 500, "OR " * 500, "\ud800"],
    is_typing=False,
)
def test_every_string_has_a_reading_or_an_error(*, texts: list[str], is_typing: bool) -> None:
    for text in texts:
        query = outcome(text, is_typing=is_typing)
        if isinstance(query, InvalidQueryError):
            assert 0 <= query.position <= len(text)
            assert str(query).encode()
            continue
        assert query.text == text
        terms = [*leaves(query.node)]
        assert len(terms) <= 64
        for leaf, _ in terms:
            assert 0 <= leaf.at < len(text)
            if isinstance(leaf, FieldTest):
                assert field_named(leaf.name)
                assert leaf.values


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "(" * 1_999,
        '"' * 1_999,
        "-" * 1_999,
        "a:" * 999,
        "re:/" + "(" * 900 + "/",
        "re:/" + "(?:" * 600 + ")" * 150 + "/",
        "re:/a{1000000000}{1000000000}/",
        "re:/(?:a{70}){70}/",
        "re:/" + "a|" * 900 + "/",
        f"id:{',' * 1_900}",
        "超" * 1_999,
    ],
)
def test_hostile_queries_are_read_in_bounded_time(text: str) -> None:
    with cpu_seconds(5):  # usually 0.3 s; several times as long under coverage
        outcome(text)


# The table of fields


def test_every_example_is_a_test_of_its_field() -> None:
    for field in FIELDS:
        (node,) = parsed(field.example).node.nodes
        if field.kind is ValueKind.PATTERN:
            assert isinstance(node, Regex)
        else:
            assert isinstance(node, FieldTest)
            assert node.name == field.name
        assert field.help.endswith(".")
        assert bool(field.choices) == (field.kind is ValueKind.CHOICE)
        assert bool(field.wants) != bool(field.choices)


def test_names_are_found_regardless_of_case_and_misspellings_are_guessed() -> None:
    assert field_named("FILE") is field_named("file")
    assert field_named("since") is field_named("after")
    assert field_named("nothing") is None
    for typo in ("projct", "proejct", "projects", "xproject", "projectt", "files", "flie", "statsu", "token"):
        assert similar_field(typo), typo
    for word in ("host", "div", "list", "hash", "no", "ids", "http", "std", "localhost", "date"):
        assert similar_field(word) is None, word
