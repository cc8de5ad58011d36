"""Style sheets and scripts without what a browser does not need."""

from __future__ import annotations

import re

import pytest

from pollux.render.html.compact import compact_script, compact_style
from pollux.render.html.style_sheets import compact_sheet, style_sheet


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("a {\n  color : red ;\n}\n", "a{color :red}"),
        ("/* a */ a{b:c;} /* b */", "a{b:c}"),
        ("a{b:c;;}", "a{b:c}"),
        (".a :hover > b , c{}", ".a :hover>b,c{}"),
        (".a:not( .b ) .c{}", ".a:not(.b) .c{}"),
        ("a + b ~ c{}", "a + b ~ c{}"),
        ("@media screen and (max-width: 5rem){ a{b:c} }", "@media screen and (max-width:5rem){a{b:c}}"),
        ("a{width: calc( 100% - 2rem + (1px * 3) )}", "a{width:calc(100% - 2rem + (1px * 3))}"),
        ("a{margin: -1rem  auto 0 -.5rem}", "a{margin:-1rem auto 0 -.5rem}"),
        ("a{font: 1rem / 1.6 x , y}", "a{font:1rem / 1.6 x,y}"),
        ("a{--x: light-dark( #fff , #000 )}", "a{--x:light-dark(#fff,#000)}"),
    ],
)
def test_spaces_without_a_meaning_are_removed(css: str, expected: str) -> None:
    assert compact_style(css) == expected
    assert compact_style(expected) == expected


@pytest.mark.parametrize(
    "css",
    [
        'a{content:"a  /* b */ ; } \\" c"}',
        "a{content:'it''s  ;}'}",
        'a{content:"\'  {"}',
        "a{background:url( data:x;y, /*z*/  w )}",
        "a{background:URL(x  y)}",
        '[title="a  >  b"]{c:d}',
        r".a\;b\ c{d:e}",
    ],
)
def test_strings_and_addresses_stay_as_they_are(css: str) -> None:
    assert compact_style(css) == css


def test_an_address_in_quotes_loses_only_the_spaces_around_it() -> None:
    assert compact_style("a{b: url( 'x  y' )}") == "a{b:url('x  y')}"


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        (".a/* x */.b{}", ".a.b{}"),
        (".a /* x */ .b{}", ".a .b{}"),
        ("a/* x */b{}", "a/**/b{}"),
        ("a{b:c/* x */}", "a{b:c}"),
        ("a{}/* never ends", "a{}"),
    ],
)
def test_a_comment_is_not_a_space(css: str, expected: str) -> None:
    assert compact_style(css) == expected


def test_custom_properties_get_short_names() -> None:
    names = {"--soft": "--a", "--so": "--b"}
    css = "a{--soft:red;color:var( --soft );b:--so-far;c:'--soft';--other:var(--so)}"
    assert compact_style(css, names) == "a{--a:red;color:var(--a);b:--so-far;c:'--soft';--other:var(--b)}"


def test_every_property_that_a_sheet_uses_is_defined_under_its_short_name() -> None:
    css = "".join(compact_sheet(style_sheet(name)) for name in ("frame.css", "session.css"))
    defined = re.findall(r"(?<=[{;])(--[\w-]+):", css)
    assert {*re.findall(r"var\((--[\w-]+)", css)} <= {*defined}
    assert len({*defined}) > 30
    assert max(map(len, defined)) <= 4
    assert compact_sheet("a{color:var(--soft)}") != "a{color:var(--soft)}"


def test_a_script_keeps_its_line_breaks() -> None:
    code = 'f(() => {\n  // why\n  const a = "//  b" // c\n\n  return a\n})\n'
    assert compact_script(code) == 'f(() => {\nconst a = "//  b" // c\nreturn a\n})\n'
