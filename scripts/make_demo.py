"""Write the demo home: an invented engineer's Gemini CLI history, in the shape of every generation of the client.

Run `python scripts/make_demo.py`; it rewrites `src/pollux/demo/home/.gemini`. Nothing depends on the clock, the machine
or chance, so that two runs give the same bytes. The order is: what the project files and the longer answers say, the
wire (how each release of the client writes), the tools, the recorder, the sessions one by one, the rest of the home.

Mara works for a small observatory: `skywatch` (web app), `tide-tables` (Rust), `Büro-Notizen` (a folder of notes),
`Ledger` (on her Windows laptop) and `moon-phase-clock`, an old hobby. The client deletes sessions after 30 days, but
only in projects that are opened, and never in a folder named by a hash: old sessions lie where she has not been since.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import re
import shutil
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Version: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["user", "gemini", "info", "warning", "error"]
Thoughts: TypeAlias = Sequence[tuple[str, str]]

OUT = Path(__file__).resolve().parent.parent / "src" / "pollux" / "demo" / "home" / ".gemini"
HOME = "/home/mara"
PREAMBLE_ID = "d04923d38bb0f6017037e74183378ef4"
"""The client gives its context message this id in every session."""

# What stands in the project files

SKYWATCH_FILES = {
    "GEMINI.md": """\
# House rules

- Python 3.12, standard library first.
- Angles are degrees, times are UTC.
- Nothing in this repository opens the dome. People open the dome.
""",
    "README.md": """\
# skywatch

Tells the night crew of the Kranichberg observatory what to look at, and when to close the dome.

    uvicorn skywatch.app:app
    pytest
""",
    "pyproject.toml": """\
[project]
name = "skywatch"
version = "0.8.2"
requires-python = ">=3.12"
dependencies = ["starlette>=0.38", "uvicorn>=0.30"]
""",
    "skywatch/__init__.py": "",
    "skywatch/visibility.py": '''\
"""Where an object stands in the sky of the observatory."""

from __future__ import annotations

import math
from datetime import UTC, datetime

J2000 = datetime(2000, 1, 1, 12, tzinfo=UTC)


def sidereal_time(when: datetime, longitude: float) -> float:
    """Local mean sidereal time in degrees; east is positive."""
    days = (when - J2000).total_seconds() / 86400
    return (280.46061837 + 360.98564736629 * days - longitude) % 360


def altitude(ra: float, dec: float, when: datetime, latitude: float, longitude: float) -> float:
    """Degrees above the horizon, without refraction."""
    hour_angle = math.radians(sidereal_time(when, longitude) - ra)
    lat, d = math.radians(latitude), math.radians(dec)
    return math.degrees(math.asin(math.sin(lat) * math.sin(d) + math.cos(lat) * math.cos(d) * math.cos(hour_angle)))
''',
    "skywatch/weather.py": '''\
"""Readings of the weather mast and the all-sky camera."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reading:
    at: datetime
    humidity: float
    wind: float
    cloud: float | None
    """Share of the sky, from the camera; None while the camera is blind."""


def is_stale(reading: Reading, now: datetime) -> bool:
    return (now - reading.at).total_seconds() > 300
''',
    "skywatch/alerts.py": '''\
"""Who is told what, and how often."""

from __future__ import annotations

from datetime import datetime, timedelta

QUIET = timedelta(minutes=30)

_last: dict[str, datetime] = {}


def should_send(key: str, now: datetime) -> bool:
    """Whether an alert may go out; each one is held back for half an hour after it was sent."""
    if key in _last and now - _last[key] < QUIET:
        return False
    _last[key] = now
    return True
''',
    "skywatch/app.py": '''\
"""The web application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from skywatch.visibility import altitude


async def tonight(request: Request) -> JSONResponse:
    return JSONResponse({"objects": []})


app = Starlette(routes=[Route("/tonight", tonight)])
''',
    "tests/test_app.py": """\
from skywatch.app import app


def test_routes() -> None:
    assert {route.path for route in app.routes} == {"/tonight"}
""",
    "tests/test_visibility.py": """\
from datetime import UTC, datetime

from skywatch.visibility import altitude


def test_polaris_stands_at_the_latitude() -> None:
    when = datetime(2025, 11, 4, 21, tzinfo=UTC)
    assert abs(altitude(37.95, 89.26, when, 50.9, 11.0) - 50.9) < 1
""",
}

TIDE_FILES = {
    "Cargo.toml": """\
[package]
name = "tide-tables"
version = "0.3.0"
edition = "2021"

[dependencies]
chrono = "0.4"
""",
    "README.md": """\
# tide-tables

High and low water for the stations of the North Sea, from harmonic constituents, without a network.

    tide-tables cuxhaven --days 7
""",
    "src/main.rs": """\
mod harmonics;
mod stations;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cuxhaven".into());
    let station = stations::find(&name).expect("no such station");
    for (time, height) in harmonics::extremes(&station, 7) {
        println!("{time}  {height:+.2} m");
    }
}
""",
    "src/harmonics.rs": """\
use crate::stations::Station;

/// Height above chart datum at `hours` since the epoch of the station.
pub fn height(station: &Station, hours: f64) -> f64 {
    station
        .constituents
        .iter()
        .map(|c| {
            let speed = speed_of(&c.name).unwrap();
            c.amplitude * (speed * hours - c.phase).to_radians().cos()
        })
        .sum()
}

/// Degrees per hour.
fn speed_of(name: &str) -> Option<f64> {
    match name {
        "M2" => Some(28.984_104_2),
        "S2" => Some(30.0),
        "N2" => Some(28.439_729_5),
        "K1" => Some(15.041_068_6),
        "O1" => Some(13.943_035_6),
        _ => None,
    }
}
""",
    "src/stations.rs": """\
pub struct Constituent {
    pub name: String,
    pub amplitude: f64,
    pub phase: f64,
}

pub struct Station {
    pub name: String,
    pub constituents: Vec<Constituent>,
}

pub fn find(name: &str) -> Option<Station> {
    let text = std::fs::read_to_string(format!("data/{name}.txt")).ok()?;
    Some(parse(name, &text))
}

fn parse(name: &str, text: &str) -> Station {
    let constituents = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            Constituent {
                name: words.next().unwrap().to_string(),
                amplitude: words.next().unwrap().parse().unwrap(),
                phase: words.next().unwrap().parse().unwrap(),
            }
        })
        .collect();
    Station { name: name.to_string(), constituents }
}
""",
    "data/cuxhaven.txt": "# name amplitude/m phase/deg\nM2 1.37 338.2\nS2 0.34 42.9\nN2 0.22 314.0\nM4 0.10 161.5\n",
    "data/husum.txt": "# name amplitude/m phase/deg\nM2 1.62 2.7\nS2 0.41 71.3\n",
}

NOTES_FILES = {
    "GEMINI.md": """\
# Notizen

- Antworte in der Sprache der Notiz.
- Protokolle: Datum, Anwesende, Beschlüsse, Aufgaben.
""",
    "offene-nacht/einladung.md": """\
# Offene Nacht am Kranichberg

Am 21. November öffnen wir die Kuppel für alle. Warme Kleidung mitbringen, Taschenlampen nur mit rotem Licht.
Für Kinder gibt es Kakao, für Erwachsene den Saturn.
""",
    "offene-nacht/poster.png": "",
    "protokolle/2026-11-09.md": """\
# Teamrunde 9. November

Anwesend: Mara, Jonas, 由紀 (per Video)

Kuppelmotor quietscht wieder, Jonas fettet am Mittwoch. skywatch 0.9 läuft seit Montag, zwei Fehlalarme.
由紀 fragt, ob die Einladung auch auf Japanisch auf die Seite kann. Ja, bis Freitag.
Kakao: wer bestellt? Mara. Reicht eine Kanne? Letztes Jahr nicht.
""",
}

LEDGER_FILES = {
    "Ledger.sln": "Microsoft Visual Studio Solution File, Format Version 12.00\n",
    "src\\Money.cs": """\
namespace Ledger;

public readonly record struct Money(double Amount, string Currency)
{
    public static Money operator +(Money a, Money b) => new(a.Amount + b.Amount, a.Currency);

    public override string ToString() => $"{Amount:0.00} {Currency}";
}
""",
    "src\\Import.cs": """\
namespace Ledger;

public static class Import
{
    public static Money ParseAmount(string text) =>
        new(double.Parse(text.Replace(".", "").Replace(',', '.')), "EUR");
}
""",
}

# What the longer answers say

MOON_ANSWER = """\
You need no network: the Moon keeps better time than most NTP servers. Count days since a known new moon and take the \
remainder of the synodic month.

```c
#define SYNODIC 29.530588853

// 2000-01-06 18:14 UTC was a new moon.
static double moon_age(time_t now) {
    double days = (now - 947182440) / 86400.0;
    return fmod(days, SYNODIC);          // 0 = new, 14.77 = full
}

static int moon_frame(time_t now) {      // which of 30 bitmaps to show
    return (int)(moon_age(now) / SYNODIC * 30 + 0.5) % 30;
}
```

For the panel:

1. Keep 30 bitmaps of 200×200 at 1 bit: 150 kB, fine for flash.
2. Refresh once an hour; e-ink remembers the rest.
3. Mirror the bitmap for the southern hemisphere.
"""

MOON_DRIFT = """\
The *mean* is right to seconds per century. What you see is the *true* phase, and that wobbles around the mean because \
the orbit is an ellipse:

| source | size |
| --- | --- |
| mean synodic month | < 1 minute in 10 years |
| equation of the centre | up to ± 14 hours |
| your RTC crystal, 20 ppm | 1.75 hours in 10 years |

With 30 frames, one frame is 23.6 hours, so the picture is never more than one frame off. Nobody will see it, except \
an astronomer, and they look at the real one.
"""

ALERTS_DESIGN = """\
Three parts, so that each can fail alone:

- **Sources** push `Pass(satellite, rises, sets, brightest)`; the first one reads the two-line elements once a day.
- **Rules** turn a pass into an `Alert` when it crosses the field of view of a running exposure.
- **Channels** deliver: web page, chat, the red lamp in the corridor.

```python
@dataclass(frozen=True)
class Alert:
    key: str            # same pass, same key: nobody is told twice
    severity: Literal["notice", "warning"]
    text: str
```

Keep the *quiet period* in the rule, not in the channel, otherwise the lamp and the chat disagree about what was said.
"""

ALERTS_FLASH = """\
Yes. A restart forgets `_last`, so every alert of the last half hour is sent again. Two cheap ways:

1. write the keys with their time to SQLite (one table, one index), or
2. do nothing and send one "skywatch restarted" notice, which explains the echo.

I would take 2 until somebody complains.
"""

SIDEREAL_FIXED = """\
Found it: the longitude had the wrong sign. East is positive in the docstring, but the formula *subtracted* it, which \
moved the sky by twice the longitude: 2 × 11° = 22°, and at 15° an hour that is **1 h 28 min**, exactly your error.

- `skywatch/visibility.py`: `- longitude` → `+ longitude`
- `tests/test_visibility.py`: a test that fails with the old sign

The Polaris test could never see this: a star at the pole does not care where you stand.
"""

TIDE_PANIC = """\
The panic comes from `speed_of(&c.name).unwrap()`: Cuxhaven has a shallow-water constituent `M4`, and the table only \
knows the five big ones. I made two changes:

1. `M4`, `MS4` and `M6` are in the table (their speeds are sums of the parents', so this is exact).
2. An unknown name is now skipped *and said*, instead of ending the program in the middle of a table.

> A tide table that is silently 10 cm short is worse than no tide table.
"""

TIDE_NODAL = """\
The nodal correction changes the amplitude of `M2` by ± 3.7 % over 18.6 years. For Cuxhaven that is ± 5 cm, more than \
the difference between two of our neighbours' tables. What is done:

| constituent | factor *f* | 2026 |
| --- | --- | ---: |
| M2, N2 | 1 - 0.037 cos N | 0.966 |
| K1 | 1.006 + 0.115 cos N | 1.110 |
| O1 | 1.009 + 0.187 cos N | 1.178 |
| S2 | 1 | 1.000 |

- [x] factors in `src/nodal.rs`
- [x] `height` multiplies by them
- [x] tests pass
- [ ] phases (*u*): up to 2° for M2, next time
"""

TIDE_MEMORY = """\
Both ways give the same numbers; they differ in what a station costs:

| | per station | start-up | honest? |
| --- | ---: | ---: | --- |
| text files, parsed when asked | 0 | 0.2 ms | yes |
| `include_str!` at build time | 180 bytes | 0 | yes, but a typo needs a release |
| `build.rs` into a `phf` map | 90 bytes | 0 | yes, and the build checks every line |

For 40 stations I would take `include_str!`: no dependency, and the binary can be copied to the boat as one file.
"""

INVESTIGATION: Mapping[str, Json] = {
    "SummaryOfFindings": (
        "Heights are computed in src/harmonics.rs:height from the constituents that src/stations.rs:parse reads out of "
        "data/<name>.txt. Both unwrap(): a line with two words ends the program. extremes() is called in main.rs but "
        "does not exist yet, so the binary does not build."
    ),
    "ExplorationTrace": ["listed src", "read src/harmonics.rs", "read src/stations.rs", "searched for 'extremes'"],
    "RelevantLocations": [
        {"FilePath": "src/harmonics.rs", "Reasoning": "sum of the constituents", "KeySymbols": ["height", "speed_of"]},
        {"FilePath": "src/stations.rs", "Reasoning": "text format of a station", "KeySymbols": ["parse", "Station"]},
    ],
}

LEDGER_INVESTIGATION: Mapping[str, Json] = {
    "SummaryOfFindings": (
        "Amounts enter through Import.ParseAmount and are stored as double in Money. There are no other constructors. "
        "Rounding happens only in Money.ToString, so sums carry the binary error."
    ),
    "ExplorationTrace": ["read src\\Import.cs", "read src\\Money.cs", "searched for 'new Money('"],
    "RelevantLocations": [
        {"FilePath": "src\\Money.cs", "Reasoning": "the only money type", "KeySymbols": ["Money", "operator +"]},
    ],
}

DOME_INVESTIGATION: Mapping[str, Json] = {
    "SummaryOfFindings": (
        "Readings are plain values (skywatch/weather.py:Reading). Nothing combines them: is_stale is never called, "
        "humidity and cloud are not compared anywhere, and app.py does not import weather at all. A dome advice can be "
        "a pure function of the newest reading and the time."
    ),
    "ExplorationTrace": ["listed skywatch", "read skywatch/weather.py", "searched for 'is_stale'"],
    "RelevantLocations": [
        {"FilePath": "skywatch/weather.py", "Reasoning": "the values", "KeySymbols": ["Reading", "is_stale"]},
        {"FilePath": "skywatch/app.py", "Reasoning": "where a route would go", "KeySymbols": ["tonight", "app"]},
    ],
}

DOME_PLAN = """\
# Advice to close the dome

## Goal

One function that says *open*, *close* or *ask a human*, from the newest reading. It advises; it moves nothing.

## Rules

1. Stale reading (older than 5 minutes): close.
2. Humidity of 92 % or more, or wind of 14 m/s or more: close.
3. Camera blind and humidity above 80 %: ask a human.
4. Clouds over 70 % of the sky: close.
5. Otherwise: open.

## Steps

- [ ] `skywatch/dome.py` with `Advice` and `advise(reading, now)`
- [ ] `tests/test_dome.py`, one test a rule
- [ ] `GET /dome`
"""

DOME_CODE = '''\
"""Advice about the dome; it moves nothing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from skywatch.weather import Reading, is_stale


class Advice(StrEnum):
    OPEN = "open"
    CLOSE = "close"
    ASK = "ask a human"


def advise(reading: Reading, now: datetime) -> Advice:
    """First rule that fits; the order is that of the plan."""
    if is_stale(reading, now):
        return Advice.CLOSE
    if reading.humidity >= 92 or reading.wind >= 14:
        return Advice.CLOSE
    if reading.cloud is None:
        return Advice.ASK if reading.humidity > 80 else Advice.OPEN
    return Advice.CLOSE if reading.cloud > 0.7 else Advice.OPEN
'''

DOME_TESTS = """\
from datetime import UTC, datetime, timedelta

import pytest

from skywatch.dome import Advice, advise
from skywatch.weather import Reading

NOW = datetime(2026, 10, 19, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("age", "humidity", "wind", "cloud", "advice"),
    [
        (0, 60, 3, 0.1, Advice.OPEN),
        (400, 60, 3, 0.1, Advice.CLOSE),
        (0, 92, 3, 0.1, Advice.CLOSE),
        (0, 60, 14, 0.1, Advice.CLOSE),
        (0, 85, 3, None, Advice.ASK),
        (0, 60, 3, 0.9, Advice.CLOSE),
    ],
)
def test_rules(age: int, humidity: float, wind: float, cloud: float | None, advice: Advice) -> None:
    reading = Reading(NOW - timedelta(seconds=age), humidity, wind, cloud)
    assert advise(reading, NOW) is advice
"""

STORE_ADVICE = """\
Short answer: **SQLite, one table, WAL**. The mast writes one row every 10 seconds:

| | rows a day | size a year |
| --- | ---: | ---: |
| mast, 10 s | 8 640 | 110 MB |
| camera, 60 s | 1 440 | 18 MB |

That is nothing, and the query you need most is the newest row:

```sql
create table reading (
    at       integer primary key,   -- microseconds, UTC
    humidity real not null,
    wind     real not null,
    cloud    real                   -- null while the camera is blind
) strict;

select * from reading order by at desc limit 1;
```

Three warnings:

1. `at` as primary key makes the newest row one step in the B-tree. Do not add a second index.
2. Set `synchronous=normal`. Losing the last second of weather in a power cut is fine: the dome has its own battery.
3. Do not put the database on the network share. You know why, it was in the incident report of June.
"""

STORE_MIGRATION = """\
Do it in three deployments, none of which needs a night without data:

1. **Write both.** The logger appends to the CSV as before and inserts into SQLite; a failed insert is only counted.
2. **Read SQLite, fall back to CSV.** Compare the two for a week; `skywatch doctor` prints the first difference.
3. **Stop the CSV.** Keep the files: they are the only record of the winter when the clock was an hour off.

The import of the old files is one statement per day and about 90 seconds in all. Two traps:

- 25 October 2026 has 25 hours in local time. The CSV is in *local* time before March 2025, in UTC afterwards.
- `cloud` is written as `-1` while the camera is blind. It has to become `null`, or the sky is very clear indeed.
"""

STATE_SNAPSHOT = """\
<state_snapshot>
<overall_goal>Move the weather readings of skywatch from CSV files to SQLite without losing a night.</overall_goal>
<key_knowledge>
- table `reading(at, humidity, wind, cloud)`, `at` is the primary key, microseconds UTC, WAL, synchronous=normal
- CSV files before March 2025 are in local time; `cloud` = -1 means the camera was blind
- tests run with `pytest -q`
</key_knowledge>
<recent_actions>
- compared storage options, SQLite chosen
- wrote `skywatch/store.py` with `append` and `newest`
</recent_actions>
<current_plan>
1. [DONE] choose the storage
2. [DONE] `skywatch/store.py`
3. [IN PROGRESS] import of the old CSV files
4. [TODO] `skywatch doctor` compares both
</current_plan>
</state_snapshot>"""

STORE_CODE = '''\
"""Weather readings in SQLite."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from skywatch.weather import Reading

SCHEMA = """
create table if not exists reading (
    at integer primary key, humidity real not null, wind real not null, cloud real
) strict
"""


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode=wal")
    connection.execute("pragma synchronous=normal")
    connection.execute(SCHEMA)
    return connection


def append(connection: sqlite3.Connection, reading: Reading) -> None:
    at = int(reading.at.timestamp() * 1_000_000)
    with connection:
        connection.execute("insert or ignore into reading values (?, ?, ?, ?)",
                           (at, reading.humidity, reading.wind, reading.cloud))


def newest(connection: sqlite3.Connection) -> Reading | None:
    row = connection.execute("select at, humidity, wind, cloud from reading order by at desc limit 1").fetchone()
    return Reading(datetime.fromtimestamp(row[0] / 1_000_000, UTC), *row[1:]) if row else None
'''

IMPORT_ANSWER = """\
The importer is one generator and one `executemany`:

```python
def rows(path: Path) -> Iterator[tuple[int, float, float, float | None]]:
    zone = LOCAL if path.stem < "2025-03" else UTC
    for at, humidity, wind, cloud in csv.reader(path.open()):
        when = datetime.fromisoformat(at).replace(tzinfo=zone)
        yield micros(when), float(humidity), float(wind), None if cloud == "-1" else float(cloud)
```

In the hour that exists twice, `fold` decides; the old files have no hint, so both copies get `fold=0` and the second \
is ignored by the primary key. You lose at most 360 rows a year, every one at three in the morning.
"""

INVITATION = """\
Gern. Drei Fassungen, gleicher Ton, gleiche Länge:

**Deutsch**
> Am 21. November öffnen wir die Kuppel für alle. Für Kinder gibt es Kakao, für Erwachsene den Saturn.

**日本語**
> 十一月二十一日、クラニヒベルク天文台のドームを一般公開します。\
子どもにはココア、大人には土星をご用意しています。暖かい服装でお越しください。

**English**
> On 21 November the dome is open to everyone. There is cocoa for the children and Saturn for the grown-ups.

Zum Japanischen: 「ご用意しています」 ist höflich und passt zum Scherz; 由紀 sollte trotzdem einmal darübersehen. 🪐
"""

SATURN_ANSWER = """\
Ja, Saturn steht gut: am 21. November um 20 Uhr etwa 40° hoch im Süden, die Ringe sind rund 8° geneigt und damit \
wieder sichtbar. Der Mond ist fast voll (91 %), also lieber **Saturn, Doppelsterne, Mondrand** und keine Galaxien.

1. 18:00 bis 19:30 Kinder: Mond, dann Kakao
2. 19:30 bis 21:30 Saturn, je Gruppe 8 Minuten
3. ab 21:30 wer noch warm ist: Albireo, γ Andromedae
"""

CHANGES_ANSWER = """\
Since `v0.8.2`:

- **Added** advice about the dome (`GET /dome`), weather readings in SQLite
- **Fixed** alerts are held back per key, not per channel
- **Changed** readings older than 5 minutes count as bad weather

No migration is needed; the old CSV files are still read.
"""

DUPLICATES_FIXED = """\
The two false alarms have one cause: `should_send` marks an alert as sent *before* the mail server has taken it. When \
the server answered 451 (try again), the caller retried with a **new key**, because the key contained the minute:

```text
21:59  low-cloud:21:59   451 greylisted
22:00  low-cloud:22:00   250 ok
22:04  low-cloud:21:59   250 ok   <- the queue's own retry
```

The key is now the rule and the night, the retry belongs to the queue alone.
"""

DISK_ANSWER = """\
`/var` is full, and it is us:

| what | size | since |
| --- | ---: | --- |
| `/var/lib/skywatch/frames` | 41 GB | all-sky frames, nothing deletes them |
| `/var/log/journal` | 3.9 GB | one line per frame, see above |
| `/var/lib/skywatch/weather.db-wal` | 1.1 GB | a reader that never ends keeps the WAL |

First the frames older than 14 days (`find … -mtime +14 -delete`, please look at the list before), then restart the \
dashboard: it holds the read transaction that keeps the WAL from being folded in.
"""

REPORT_CODE = '''\
"""The page that the day crew reads with its coffee."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from skywatch.weather import Reading


def report(night: date, readings: Iterable[Reading]) -> str:
    """Markdown; empty nights are said to be empty."""
    rows = list(readings)
    if not rows:
        return f"# Night of {night}\\n\\nNo readings. Was there a night?\\n"
    clear = sum(1 for row in rows if row.cloud is not None and row.cloud < 0.3)
    wettest = max(rows, key=lambda row: row.humidity)
    return (
        f"# Night of {night}\\n\\n"
        f"- {clear / len(rows):.0%} clear\\n"
        f"- dampest at {wettest.at:%H:%M}: {wettest.humidity:.0f} %\\n"
    )
'''

REPORT_ANSWER = """\
The report is in `skywatch/report.py` and prints for last night:

```markdown
# Night of 2026-11-11

- 64% clear
- dampest at 05:12: 88 %
```

What it does **not** do yet: say how much of the clear time was used. For that it needs the exposure log.
"""

REPORT_LATER = """\
Three things, in the order of how often they are asked for at breakfast:

1. *Was it us or the sky?* Clear time minus exposure time, as one number.
2. *What is that line?* Satellites that crossed a frame, from the alerts.
3. *Did anybody close the dome?* Advice and what was done, side by side.

I would start with 1: the exposure log has start and end, and `report` already knows which readings are clear.
"""

ALERTS_TEST = """\
from datetime import UTC, datetime

from skywatch.alerts import _last, key_of, should_send

NOW = datetime(2026, 11, 8, 22, tzinfo=UTC)


def test_the_first_goes_out() -> None:
    assert should_send(key_of("low-cloud", NOW), NOW)


def test_nothing_is_remembered_at_first() -> None:
    assert not _last
"""

HEADERLESS_ANSWER = """\
`pytest -q -x tests` fails because `_last` is a module global: the first test leaves a key behind. Either a fixture \
that clears it, or, better, give `should_send` a `Sent` object to remember in:

```python
class Sent:
    def __init__(self) -> None:
        self._last: dict[str, datetime] = {}
```

Then two tests cannot meet, and neither can two workers.
"""

MINUTES_ANSWER = """\
| Wer | Was | Bis |
| --- | --- | --- |
| Jonas | Kuppelmotor fetten | Mi, 11. November |
| Mara | Kakao bestellen (zwei Kannen!) | Mo, 16. November |
| Mara | Japanische Einladung auf die Seite | Fr, 13. November |
| offen | Fehlalarme von skywatch 0.9 | ? |

Die letzte Zeile hat niemanden. Soll ich sie dir geben?
"""

# The wire


def uid(seed: str) -> str:
    """Make a UUID that looks random and is not."""
    return str(uuid.UUID(bytes=hashlib.sha256(seed.encode()).digest()[:16], version=4))


def number(seed: str, low: int, high: int) -> int:
    """Pick a number that looks random and is not."""
    return low + int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4]) % (high - low + 1)


def stamp(when: datetime) -> str:
    """Write a time as JavaScript does."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def epoch_ms(when: datetime) -> int:
    """Milliseconds since 1970."""
    return round(when.timestamp() * 1000)


def time_of(text: str) -> datetime:
    """Read a UTC time such as `2026-11-14 18:30:05`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def compact(value: Json) -> str:
    """JSON as `JSON.stringify(value)` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pretty(value: Json) -> str:
    """JSON as `JSON.stringify(value, null, 2)` writes it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def token_count(text: str) -> int:
    """About what the API would count."""
    return max(1, len(text.encode()) // 4)


@dataclass
class Project:
    """A folder that Mara works in, with its files as they change from session to session."""

    root: str
    files: dict[str, str]
    slug: str
    logs: dict[str, list[Json]] = field(default_factory=dict)
    """What was typed, by folder."""

    @property
    def hash(self) -> str:
        """The name of the folder up to 0.28."""
        return hashlib.sha256(self.root.encode()).hexdigest()

    @property
    def is_windows(self) -> bool:
        """Whether paths have backslashes."""
        return "\\" in self.root

    def path(self, name: str) -> str:
        """Return the absolute path of a file of the project."""
        return self.root + ("\\" if self.is_windows else "/") + name

    def marker(self) -> str:
        """Return the path as the registry keeps it."""
        return self.root.lower() if self.is_windows else self.root

    def folder(self, version: Version) -> str:
        """Name the folder below `tmp` that a release uses."""
        return self.slug if version >= (0, 29) else self.hash

    def tree(self) -> str:
        """Draw the folder structure as the client shows it to the model."""
        return "\n".join([self.root + "/", *_tree_lines([name.split("/") for name in sorted(self.files)], "")])


def _tree_lines(names: list[list[str]], indent: str) -> list[str]:
    plain = [name[0] for name in names if len(name) == 1]
    folders = sorted({name[0] for name in names if len(name) > 1})
    lines: list[str] = []
    for index, entry in enumerate([*plain, *folders], 1):
        is_last = index == len(plain) + len(folders)
        is_folder = index > len(plain)
        lines.append(f"{indent}{'└───' if is_last else '├───'}{entry}{'/' if is_folder else ''}")
        if is_folder:
            below = [name[1:] for name in names if len(name) > 1 and name[0] == entry]
            lines += _tree_lines(below, indent + ("    " if is_last else "│   "))
    return lines


@dataclass
class Call:
    """A tool call, before and after it has got its id and time."""

    name: str
    args: Mapping[str, Json]
    response: Mapping[str, Json]
    display: Json
    display_name: str
    description: str
    markdown: bool = True
    status: str = "success"
    agent_id: str | None = None
    limit: int | None = None
    """A longer output is written to a separate file; only its first fifth and its end stay here."""
    id: str = ""
    at: str = ""

    def result(self) -> Json:
        """Return the part that goes back to the model."""
        return {"functionResponse": {"id": self.id, "name": self.name, "response": self.response}}

    def wire(self, version: Version) -> dict[str, Json]:
        """Return the record in `toolCalls`; the order of the last keys changed with 0.35."""
        record: dict[str, Json] = {"id": self.id, "name": self.name, "args": self.args, "result": [self.result()]}
        record |= {"status": self.status, "timestamp": self.at}
        if self.agent_id:
            record["agentId"] = self.agent_id
        if isinstance(self.display, str | list) or (self.display is not None and version >= (0, 25)):
            record["resultDisplay"] = self.display
        label: dict[str, Json] = {"displayName": self.display_name}
        text: dict[str, Json] = {"description": self.description}
        return (
            record | (text | label if version >= (0, 35) else label | text) | {"renderOutputAsMarkdown": self.markdown}
        )


@dataclass
class Message:
    """A message of a session."""

    id: str
    at: str
    kind: Kind
    content: str | Sequence[Json]
    shown: Sequence[Json] | None = None
    thoughts: Sequence[Json] | None = None
    tokens: Mapping[str, Json] | None = None
    model: str | None = None
    calls: list[Call] = field(default_factory=list)
    calls_first: bool = False
    """Recorded by the tool recorder of the releases up to 0.31, which has another order of keys."""
    is_bare: bool = False
    """Recorded again by the client itself, without a model and with tokens of `null`."""

    def wire(self, version: Version) -> dict[str, Json]:
        """Return the message as JSON."""
        record: dict[str, Json] = {"id": self.id, "timestamp": self.at, "type": self.kind, "content": self.content}
        if self.shown is not None:
            record["displayContent"] = self.shown
        if self.kind != "gemini":
            return record
        if self.is_bare:
            return record | {"thoughts": [], "tokens": None}
        calls: dict[str, Json] = {"toolCalls": [call.wire(version) for call in self.calls]} if self.calls else {}
        if self.calls_first:
            return record | calls | {"thoughts": self.thoughts, "model": self.model, "tokens": self.tokens}
        if self.thoughts is not None:
            record["thoughts"] = self.thoughts
        if self.model is not None:
            record |= {"tokens": self.tokens, "model": self.model}
        return record | calls

    def parts(self) -> list[Json]:
        """Return the content as in the history of the API."""
        if not isinstance(self.content, str):
            return list(self.content)
        parts: list[Json] = [
            {"text": f"**{thought['subject']}** {thought['description']}", "thought": True}
            for thought in self.thoughts or ()
            if isinstance(thought, Mapping)
        ]
        if self.content:
            parts.append({"text": self.content})
        parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.args}} for call in self.calls]
        return parts


def spoken(message: Message) -> list[Json]:
    """Return the parts of a message without its thoughts, a call's id last as the running client has it."""
    parts: list[Json] = []
    for part in message.parts():
        call = part.get("functionCall") if isinstance(part, Mapping) else None
        if isinstance(call, Mapping):
            parts.append({"functionCall": {"name": call["name"], "args": call["args"], "id": call["id"]}})
        elif not (isinstance(part, Mapping) and "thought" in part):
            parts.append(part)
    return parts


# The tools

STATIC = {
    "read_file": "Reads and returns the content of a specified file.",
    "write_file": "Writes content to a specified file in the local filesystem.",
    "replace": "Replaces text within a file. By default, replaces a single occurrence.",
    "run_shell_command": "This tool executes a given shell command as `bash -c <command>`.",
    "search_file_content": "Searches for a regular expression pattern within the content of files.",
    "grep_search": "Searches for a regular expression pattern within file contents. Max 100 matches.",
    "list_directory": "Lists the names of files and subdirectories directly within a specified directory path.",
    "glob": "Efficiently finds files matching specific glob patterns, sorted by modification time (newest first).",
    "ask_user": "Ask the user one or more questions to gather preferences, clarify requirements, or make decisions.",
    "write_todos": "This tool can help you list out the current subtasks that are required to be completed.",
    "web_fetch": "Processes content from URL(s), embedded in a prompt.",
    "codebase_investigator": "The specialized tool for codebase analysis, architectural mapping, and understanding "
    "system-wide dependencies.",
}
"""Up to 0.34, and for failed calls in all releases, the record holds the tool's own description (here cut short)."""

ANSI = re.compile(r"\x1b\[(\d*)m")
COLOURS = {"31": "#cd3131", "32": "#0dbc79", "33": "#e5e510", "36": "#11a8cd"}
BUILD_FILES = ("Cargo.toml", "pyproject.toml")
SCREEN_WIDTH = 80
SNIPPET_WIDTH = 30


@dataclass(frozen=True)
class Tools:
    """The tools of one release, at work on the files of one project."""

    project: Project
    version: Version

    def read(self, name: str) -> Call:
        """`read_file`; a file that is not there gives an error."""
        path = self.project.path(name)
        args = {"absolute_path" if self.version < (0, 14) else "file_path": path}
        if name in self.project.files:
            return self._call("read_file", args, self.project.files[name], "", "ReadFile", name)
        message = f"File not found: {path}"
        shown = "File not found." if self.version >= (0, 28) else message
        return self._failed("read_file", args, message, shown, "ReadFile")

    def write(self, name: str, content: str) -> Call:
        """`write_file`."""
        path = self.project.path(name)
        before = self.project.files.get(name)
        self.project.files[name] = content
        output = f"Successfully created and wrote to new file: {path}."
        if before is not None:
            output = f"Successfully overwrote file: {path}."
        if self.version >= (0, 28):
            output += f" Here is the updated code:\n{content if before is None else snippet(before, content)}"
        diff = self._file_diff(path, before or "", content, ("Original", "Written"), is_new=before is None)
        return self._call(
            "write_file", {"file_path": path, "content": content}, output, diff, "WriteFile", f"Writing to {name}"
        )

    def edit(self, name: str, old: str, new: str, instruction: str) -> Call:
        """`replace`; a text that is not there gives an error."""
        path = self.project.path(name)
        args = {"file_path": path, "old_string": old, "new_string": new, "instruction": instruction}
        before = self.project.files[name]
        if before.count(old) != 1:
            output = (
                f"Failed to edit, {before.count(old)} occurrences found for old_string in {path}. Ensure you're not "
                "escaping content incorrectly and check whitespace, indentation, and context. Use read_file tool to "
                "verify."
            )
            return self._failed(
                "replace", args, output, "Failed to edit, could not find the string to replace.", "Edit"
            )
        after = before.replace(old, new)
        self.project.files[name] = after
        output = f"Successfully modified file: {path} (1 replacements)."
        if self.version >= (0, 28):
            output += f" Here is the updated code:\n{snippet(before, after)}"
        diff = self._file_diff(path, before, after, ("Current", "Proposed"), is_new=False)
        return self._call("replace", args, output, diff, "Edit", f"{name}: {_first_line(old)} => {_first_line(new)}")

    def shell(self, command: str, output: str, description: str, *, code: int = 0) -> Call:
        """`run_shell_command`; colours in the output are shown only by 0.37 to 0.43."""
        plain = ANSI.sub("", output)
        args = {"command": command, "description": description}
        group = number(command + output, 3000, 29000)
        if self.version < (0, 27):
            result = (
                f"Command: {command}\nDirectory: (root)\nOutput: {plain}\nError: (none)\nExit Code: {code}\n"
                f"Signal: 0\nBackground PIDs: (none)\nProcess Group PGID: {group}"
            )
        else:
            result = f"Output: {plain}\n" + (f"Exit Code: {code}\n" if code else "") + f"Process Group PGID: {group}"
        shown: Json = screen(output) if (0, 37) <= self.version < (0, 44) else plain
        own = command if self.version >= (0, 39) else description
        call = self._call("run_shell_command", args, self._untrusted(result), shown, "Shell", own)
        return replace(call, markdown=False)

    def shell_denied(self, command: str, description: str) -> Call:
        """`run_shell_command`, which the user rejected."""
        reason = "User denied execution." if self.version >= (0, 28) else "User cancelled the operation."
        own = command if self.version >= (0, 39) else description
        call = self._call("run_shell_command", {"command": command, "description": description}, "", None, "Shell", own)
        response = {"error": f"[Operation Cancelled] Reason: {reason}"}
        return replace(call, response=response, status="cancelled", markdown=False)

    def grep(self, pattern: str, include: str = "*") -> Call:
        """`search_file_content`, or `grep_search` from 0.28; it really searches."""
        name = "grep_search" if self.version >= (0, 28) else "search_file_content"
        suffix = include.lstrip("*")
        hits = [
            (file, at, line)
            for file, text in sorted(self.project.files.items())
            if file.endswith(suffix)
            for at, line in enumerate(text.splitlines(), 1)
            if re.search(pattern, line)
        ]
        summary = f"Found {len(hits)} match{'' if len(hits) == 1 else 'es'}"
        output = [f'{summary} for pattern "{pattern}" in the workspace directory (filter: "{include}"):', "---"]
        for file in dict.fromkeys(hit[0] for hit in hits):
            output.append(f"File: {file}")
            output += [
                f"L{at}: {line if self.version >= (0, 28) else line.strip()}" for f, at, line in hits if f == file
            ]
            output.append("---")
        shown: Json = summary
        if self.version >= (0, 37):
            matches: list[Json] = [
                {"filePath": file, "absolutePath": self.project.path(file), "lineNumber": at, "line": line}
                for file, at, line in hits
            ]
            shown = {"summary": summary, "matches": matches}
        args = {"pattern": pattern, "include_pattern" if self.version >= (0, 32) else "include": include}
        return self._call(name, args, "\n".join(output), shown, "SearchText", f"'{pattern}' in {include}")

    def ls(self, name: str = "") -> Call:
        """`list_directory`."""
        separator = "\\" if self.project.is_windows else "/"
        below = name + separator if name else ""
        inside = {file[len(below) :]: text for file, text in self.project.files.items() if file.startswith(below)}
        folders = sorted({file.split(separator)[0] for file in inside if separator in file})
        plain = sorted(file for file in inside if separator not in file)
        path = self.project.path(name) if name else self.project.root
        sizes = {file: f" ({len(inside[file].encode())} bytes)" if self.version >= (0, 28) else "" for file in plain}
        listing = [f"[DIR] {folder}" for folder in folders] + [file + sizes[file] for file in plain]
        output = "\n".join([f"Directory listing for {path}:", *listing])
        summary = f"{'Found' if self.version >= (0, 40) else 'Listed'} {len(listing)} item(s)."
        shown: Json = summary
        if self.version >= (0, 37):
            shown = {"summary": summary, "files": [*(f"[DIR] {folder}" for folder in folders), *plain]}
        return self._call("list_directory", {"dir_path": path}, output, shown, "ReadFolder", name or ".")

    def glob(self, suffix: str) -> Call:
        """`glob` for `**/*<suffix>`."""
        pattern = f"**/*{suffix}"
        paths = [self.project.path(file) for file in sorted(self.project.files, reverse=True) if file.endswith(suffix)]
        head = f'Found {len(paths)} file(s) matching "{pattern}" within {self.project.root}'
        output = "\n".join([f"{head}, sorted by modification time (newest first):", *paths])
        return self._call(
            "glob", {"pattern": pattern}, output, f"Found {len(paths)} matching file(s)", "FindFiles", f"'{pattern}'"
        )

    def search_web(self, query: str, answer: str, source: str) -> Call:
        """`google_web_search`."""
        output = f'Web search results for "{query}":\n\n{answer}[1]\n\nSources:\n[1] {source}'
        shown = f'Search results for "{query}" returned.'
        own = f'Searching the web for: "{query}"'
        return self._call("google_web_search", {"query": query}, output, shown, "GoogleSearch", own)

    def fetch_missing(self, prompt: str, url: str) -> Call:
        """`web_fetch` of a page that is not there."""
        message = f"Error during fallback fetch for {url}: Request failed with status code 404 Not Found"
        return self._failed("web_fetch", {"prompt": prompt}, message, f"Error: {message}", "WebFetch")

    def todos(self, *items: tuple[str, str]) -> Call:
        """`write_todos` with pairs of status and description."""
        todos = [{"description": text, "status": status} for status, text in items]
        listing = "\n".join(f"{at}. [{status}] {text}" for at, (status, text) in enumerate(items, 1))
        output = f"Successfully updated the todo list. The current list is now:\n{listing}"
        return self._call(
            "write_todos", {"todos": todos}, output, {"todos": todos}, "WriteTodos", f"Set {len(items)} todo(s)"
        )

    def ask(self, header: str, question: str, options: Mapping[str, str], answer: str) -> Call:
        """`ask_user` with one question to choose from."""
        choices = [{"label": label, "description": text} for label, text in options.items()]
        entry: Json = {
            "question": question,
            "header": header,
            "type": "choice",
            "multiSelect": False,
            "options": choices,
        }
        output = compact({"answers": {"0": answer}})
        shown = f"**User answered:**\n  {header} → {answer}"
        return self._call("ask_user", {"questions": [entry]}, output, shown, "Ask User", f"Asking user: {question}")

    def mcp(self, server: str, tool: str, args: Mapping[str, Json], output: str, about: str) -> Call:
        """Call a tool of an MCP server; its name got a prefix with 0.33."""
        name = f"mcp_{server}_{tool}" if self.version >= (0, 33) else tool
        own = compact(args) if self.version >= (0, 35) else about
        label = f"{tool} ({server} MCP Server)"
        return Call(name, args, {"output": self._untrusted(output)}, output, label, own)

    def mcp_failed(self, server: str, tool: str, args: Mapping[str, Json], fault: str, about: str) -> Call:
        """Call a tool of an MCP server that reports an error."""
        name = f"mcp_{server}_{tool}" if self.version >= (0, 33) else tool
        content: Json = {"content": [{"type": "text", "text": fault}], "isError": True}
        answer: Json = content if self.version >= (0, 28) else {"error": content}
        asked: Json = {"name": tool, "args": args}
        response: Json = [{"functionResponse": {"name": tool, "response": answer}}]
        exchange = f"{compact(asked)} with response: {compact(response)}"
        message = f"MCP tool '{tool}' reported tool error for function call: {exchange}"
        shown = f"Error: MCP tool '{tool}' reported an error." if self.version >= (0, 28) else message
        label = f"{tool} ({server} MCP Server)"
        return Call(name, args, {"error": message}, shown, label, about, status="error")

    def enter_plan(self, reason: str) -> Call:
        """`enter_plan_mode`."""
        shown = f"Switching to Plan mode: {reason}"
        args = {"reason": reason}
        return self._call("enter_plan_mode", args, "Switching to Plan mode.", shown, "Enter Plan Mode", reason)

    def exit_plan(self, path: str) -> Call:
        """`exit_plan_mode`, approved."""
        output = (
            "Plan approved. Switching to Default mode (edits will require confirmation).\n\n"
            f"The approved implementation plan is stored at: {path}\n"
            "Read and follow the plan strictly during implementation."
        )
        own = f"Requesting plan approval for: {path}"
        args = {"plan_filename": path.rpartition("/")[2]}
        return self._call("exit_plan_mode", args, output, f"Plan approved: {path}", "Exit Plan Mode", own)

    def complete_task(self, report: Mapping[str, Json]) -> Call:
        """End the work of a subagent."""
        output = "Output submitted and task completed."
        own = "Completing task and submitting results."
        return self._call("complete_task", {"report": report}, output, output, "Complete Task", own)

    def investigate(self, task: str, report: Mapping[str, Json], child: Recorder | None = None) -> Call:
        """Show another agent's work as its caller sees it."""
        agent, text = "codebase_investigator", pretty(report)
        output = f"Subagent '{agent}' finished.\nTermination Reason: GOAL\nResult:\n{text}"
        own = f"Delegating to agent '{agent}'"
        if child is None:
            shown = f"\nSubagent {agent} Finished\n\nTermination Reason:\n GOAL\n\nResult:\n{text}\n"
            return self._call(agent, {"objective": task}, output, shown, "Codebase Investigator Agent", own)
        progress: Json = {
            "isSubagentProgress": True,
            "agentName": agent,
            "recentActivity": child.activity(),
            "state": "completed",
            "result": text,
            "terminateReason": "GOAL",
        }
        args = {"agent_name": agent, "prompt": task}
        call = self._call("invoke_agent", args, output, progress, "Invoke Subagent", own)
        return replace(call, agent_id=child.id)

    def _call(self, name: str, args: Mapping[str, Json], output: str, shown: Json, label: str, own: str) -> Call:
        description = own if self.version >= (0, 35) else STATIC.get(name, own)
        return Call(name, args, {"output": output}, shown, label, description)

    def _failed(self, name: str, args: Mapping[str, Json], message: str, shown: str, label: str) -> Call:
        return Call(name, args, {"error": message}, shown, label, STATIC[name], status="error")

    def _untrusted(self, text: str) -> str:
        return f"<untrusted_context>\n{text}\n</untrusted_context>" if self.version >= (0, 49) else text

    def _file_diff(self, path: str, before: str, after: str, labels: tuple[str, str], *, is_new: bool) -> Json:
        name = re.split(r"[/\\]", path)[-1]
        hunks = diff_hunks(before, after)
        added = [line[1:] for line in hunks if line.startswith("+")]
        removed = [line[1:] for line in hunks if line.startswith("-")]
        head = [f"Index: {name}", "=" * 67, f"--- {name}\t{labels[0]}", f"+++ {name}\t{labels[1]}"]
        shown: dict[str, Json] = {
            "fileDiff": "\n".join([*head, *hunks]) + "\n",
            "fileName": name,
            "filePath": path,
            "originalContent": before,
            "newContent": after,
            "diffStat": {
                "model_added_lines": len(added),
                "model_removed_lines": len(removed),
                "model_added_chars": sum(map(len, added)),
                "model_removed_chars": sum(map(len, removed)),
                "user_added_lines": 0,
                "user_removed_lines": 0,
                "user_added_chars": 0,
                "user_removed_chars": 0,
            },
            "isNewFile": is_new,
        }
        return shown | {"isBuildFile": name in BUILD_FILES} if self.version >= (0, 60) else shown


def diff_hunks(before: str, after: str) -> list[str]:
    """Return the hunks of a unified diff, the counts always written out as the client's library does."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[str] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        lines.append(f"@@ -{i1 + 1 if i2 > i1 else i1},{i2 - i1} +{j1 + 1 if j2 > j1 else j1},{j2 - j1} @@")
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [" " + line for line in old[a:b]]
            else:
                lines += ["-" + line for line in old[a:b]] + ["+" + line for line in new[c:d]]
    return lines


def snippet(before: str, after: str) -> str:
    """Cut out the changed lines and five around them, as the client repeats them to the model."""
    old, new = before.split("\n"), after.split("\n")
    changed = [
        (c, d)
        for tag, _, _, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    start, end = max(0, changed[0][0] - 5), min(len(new), changed[-1][1] + 5)
    return ("...\n" if start else "") + "\n".join(new[start:end]) + ("\n..." if end < len(new) else "")


def screen(output: str) -> Json:
    """Lay output out as lines of coloured cells, the last one with the cursor."""
    lines: list[Json] = []
    for line in output.split("\n"):
        pieces = ANSI.split(line)
        cells = [_cell(pieces[0])] if pieces[0] else []
        cells += [_cell(text, colour) for colour, text in zip(pieces[1::2], pieces[2::2], strict=True) if text]
        width = len(ANSI.sub("", line))
        lines.append([*cells, _cell(" " * (SCREEN_WIDTH - width))] if width < SCREEN_WIDTH else cells)
    return [*lines, [_cell(" ", inverse=True), _cell(" " * (SCREEN_WIDTH - 1))]]


def _cell(text: str, colour: str = "", *, inverse: bool = False) -> dict[str, Json]:
    style = {"bold": colour == "1", "italic": False, "underline": False, "dim": False, "inverse": inverse}
    return {"text": text, **style, "isUninitialized": not colour, "fg": COLOURS.get(colour, ""), "bg": ""}


def _first_line(text: str) -> str:
    start = text.partition("\n")[0][:SNIPPET_WIDTH]
    return start + "..." if len(text) > SNIPPET_WIDTH else start


# The recorder


class Recorder:
    """Writes one session file as a release of the client would, and keeps its clock and its count of tokens."""

    def __init__(
        self,
        name: str,
        project: Project,
        version: Version,
        start: str,
        *,
        model: str,
        context: int = 12_000,
        is_headless: bool = False,
        parent: Recorder | None = None,
    ) -> None:
        """Start a session; the name is the seed of all its ids."""
        self.name = name
        self.project = project
        self.version = version
        self.model = model
        self.is_headless = is_headless
        self.parent = parent
        self.id = uid(f"session {name}")
        if parent and version < (0, 44):
            self.id = base36(f"agent {name}")
        self.at(start)
        self.started = self.now
        self.updated = self.started
        self.tools = Tools(project, version)
        self.messages: list[Message] = []
        self.lines: list[str] = []
        self.summary: str | None = None
        self.prompts = 0
        self.context = context
        self._cached = 0
        self._ids = 0
        self._pending: list[Json] = []
        self._context_before: dict[str, int] = {}
        if self.is_log:
            self._append(self.header())
        if self.has_checkpoints and not parent:
            self._checkpoint([self.preamble()])

    @property
    def is_log(self) -> bool:
        """Whether the file is a log of lines."""
        return self.version >= (0, 39)

    @property
    def has_checkpoints(self) -> bool:
        """Whether the log has `$set.messages`."""
        return self.version >= (0, 44)

    @property
    def file(self) -> str:
        """The path below `.gemini`."""
        suffix = "jsonl" if self.is_log else "json"
        chats = f"tmp/{self.project.folder(self.version)}/chats"
        if self.parent and self.version >= (0, 37):
            return f"{chats}/{self.parent.id}/{self.id}.{suffix}"
        owner = self.parent.id if self.parent else self.id
        return f"{chats}/session-{self.started:%Y-%m-%dT%H-%M}-{owner[:8]}.{suffix}"

    @property
    def data(self) -> str:
        """The bytes of the file."""
        if self.is_log:
            return "".join(line + "\n" for line in self.lines)
        record = self.header()
        if self.version < (0, 37):
            record["startTime"] = self.messages[0].at
        kind = {key: record.pop(key) for key in ("directories", "kind") if key in record}
        messages: dict[str, Json] = {"messages": [message.wire(self.version) for message in self.messages]}
        summary: dict[str, Json] = {"summary": self.summary} if self.summary else {}
        return pretty(record | messages | kind | summary)

    # time

    def wait(self, seconds: float) -> None:
        """Advance the clock by some seconds."""
        jitter = number(f"{self.name} {self._ids} {self.now}", 11, 987)
        self.now += timedelta(seconds=int(seconds), milliseconds=jitter)

    def at(self, time: str) -> None:
        """Set the clock."""
        self.now = time_of(time) + timedelta(milliseconds=number(f"{self.name} {time}", 20, 980))

    # what people and the model say

    def log(self, text: str) -> None:
        """Note in `logs.json` what was typed."""
        entries = self.project.logs.setdefault(self.project.folder(self.version), [])
        count = sum(1 for entry in entries if isinstance(entry, Mapping) and entry["sessionId"] == self.id)
        when = self.now - timedelta(milliseconds=number(text, 40, 190))
        entry: Json = {
            "sessionId": self.id,
            "messageId": count,
            "type": "user",
            "message": text,
            "timestamp": stamp(when),
        }
        entries.append(entry)

    def command(self, text: str) -> None:
        """Type a slash command: it is in `logs.json` only."""
        self.wait(9)
        self.log(text)

    def prompt(self, text: str, *, parts: Sequence[Json] | None = None, pause: float | None = None) -> Message:
        """Type a prompt; `parts` is what the client made of it."""
        self.wait(number(f"{self.name} {text}", 20, 160) if pause is None else pause)
        self.prompts += 1
        if not self.is_headless:
            self.log(text)
        content: str | Sequence[Json] = parts or [{"text": text}] if self.version >= (0, 28) else text
        message = self._message("user", content)
        if parts:
            message.shown = [{"text": text}]
        self._context_before[message.id] = self.context
        self.context += token_count(compact(content))
        self._record(message)
        return message

    def task(self, objective: str) -> None:
        """Record the prompt of a subagent."""
        text = (
            "Your task is to do a deep investigation of the codebase to find all relevant files, code locations, "
            "architectural mental map and insights to solve  for the following user objective:\n"
            f"<objective>\n{objective}\n</objective>"
        )
        parts: list[Json] = [{"text": text}]
        if self.is_log and "GEMINI.md" in self.project.files:
            parts = [{"text": "\n" + loaded_context(self.project)}, *parts]
        self.context += token_count(text)
        self._record(self._message("user", parts))

    def notice(self, kind: Kind, text: str) -> None:
        """Record a notice of the client to its user."""
        self._record(self._message(kind, text))

    def answer(
        self, text: str = "", *calls: Call, think: Thoughts = (), until: datetime | None = None, tool_tokens: int = 0
    ) -> Message:
        """Record one response of the model and, if it asks for tools, their results."""
        thought_at = self.now + timedelta(milliseconds=number(f"{self.name}{text[:40]}{self.now}", 900, 2400))
        self.wait(4 + len(text) // 180 + 2 * len(calls))
        if self.has_checkpoints:
            thought_at = self.now
        thoughts: list[Json] = [
            {"subject": subject, "description": detail, "timestamp": stamp(thought_at)} for subject, detail in think
        ]
        tokens = self._tokens(text, calls, think, tool_tokens)
        message = self._message("gemini", text.rstrip("\n") if self.version >= (0, 28) else text)
        message.thoughts, message.tokens, message.model = thoughts, tokens, self.model
        asked = self.now - timedelta(milliseconds=number(message.id, 1, 60))
        self._number(calls, asked)
        if self.version < (0, 9):
            self._answer_without_tools(message)
        elif self.version < (0, 32):
            self._answer_merged(message, list(calls))
        else:
            self._answer_alone(message, list(calls), until)
        self.context += token_count(text) + sum(token_count(compact([call.args, call.response])) for call in calls)
        return message

    def _answer_without_tools(self, message: Message) -> None:
        """0.4 to 0.8: only texts are recorded, thoughts of other turns slide to the next text."""
        self._pending += message.thoughts or []
        if message.content:
            message.thoughts, self._pending = self._pending, []
            self._record(message)

    def _answer_merged(self, message: Message, calls: list[Call]) -> None:
        """0.9 to 0.31: calls without a word join the message before, and their tokens are lost."""
        self.wait(1)
        for call in calls:
            call.at = stamp(self.now)
        last = self.messages[-1]
        if not message.content and not message.thoughts and last.kind == "gemini":
            last.calls += calls
            return
        message.calls = calls
        message.calls_first = not message.content
        if message.calls_first:
            message.at = stamp(self.now)
        self._record(message)

    def _answer_alone(self, message: Message, calls: list[Call], until: datetime | None) -> None:
        self._record(message)
        if not calls:
            return
        self.wait(1)
        self.now = max(self.now, until or self.now)
        for call in calls:
            call.at = stamp(self.now)
        message.calls = calls
        if self.is_log:
            self._append(message.wire(self.version))
        is_last = calls[-1].name == "complete_task"
        if self.has_checkpoints and not is_last:
            self.now += timedelta(milliseconds=number(message.id, 1, 7))
            self._record(self._message("user", [call.result() for call in calls]))

    def activity(self) -> list[Json]:
        """Return the activity of a subagent, for the display of its caller."""
        entries: list[Json] = []
        for message in self.messages:
            entries += [
                {
                    "id": uid(f"{message.id} thought"),
                    "type": "thought",
                    "content": thought["subject"],
                    "status": "running",
                }
                for thought in message.thoughts or ()
                if isinstance(thought, Mapping)
            ]
            for call in message.calls:
                entry = {
                    "id": call.id if self.has_checkpoints else uid(call.id),
                    "type": "tool_call",
                    "content": call.name,
                }
                entry |= {"displayName": call.display_name, "description": call.description}
                entries.append(entry | {"args": compact(call.args), "status": "completed"})
        return entries[-6:]

    # what the client does to its own file

    def header(self) -> dict[str, Json]:
        """Return the first line, or the first keys."""
        own_id = self.id
        if self.parent and self.version < (0, 37):
            own_id = self.parent.id
        record: dict[str, Json] = {"sessionId": own_id, "projectHash": self.project.hash}
        record["startTime"] = stamp(self.started)
        record["lastUpdated"] = stamp(self.started if self.is_log else self.updated)
        directories: dict[str, Json] = {"directories": [self.project.root]}
        kind: dict[str, Json] = {"kind": "subagent" if self.parent else "main"} if self.version >= (0, 31) else {}
        if self.parent and self.version >= (0, 37):
            kind = kind | directories if self.is_log else directories | kind
        return record | kind

    def preamble(self) -> Message:
        """Return the context that the client puts before the first prompt."""
        message = Message(PREAMBLE_ID, stamp(self.now), "user", [{"text": session_context(self.project, self.now)}])
        return replace(message, at=stamp(self.now + timedelta(milliseconds=number(self.name, 0, 1))))

    def summarise(self, text: str, scratchpad: Mapping[str, Json] | None = None) -> None:
        """Write the title, as the next client does."""
        self.summary = text
        if self.is_log:
            values: dict[str, Json] = {"summary": text}
            self._append({"$set": values | {"memoryScratchpad": scratchpad} if scratchpad else values})

    def stub(self, time: str) -> str:
        """Leave the file behind that `--resume` makes: header, context, nothing else."""
        other = Recorder(self.name, self.project, self.version, time, model=self.model)
        DEMO.put(other.file, other.data)
        return other.file

    def resume(self) -> None:
        """`/resume` or `--resume` in another minute: the whole conversation is written again."""
        self._append({"$set": {"sessionId": self.id}})
        if self.has_checkpoints:
            first = [] if self.messages[0].id == PREAMBLE_ID else [self.preamble()]
            self._checkpoint(first + self._with_responses())

    def resume_in_same_minute(self) -> None:
        """`--resume` within the minute of the start: a second header, and everything known is forgotten."""
        self.started = self.now
        self._append(self.header())
        before = self.messages
        self._checkpoint([self.preamble()])
        self._append({"$set": {"sessionId": self.id}})
        context, self.messages = self.messages, before
        bare = [
            Message(m.id, stamp(self.now), m.kind, m.parts()) for m in self._with_responses() if m.id != PREAMBLE_ID
        ]
        self._checkpoint(context + bare)

    def rewind(self, target: Message) -> None:
        """`/rewind` to before a message."""
        at = next(index for index, message in enumerate(self.messages) if message.id == target.id)
        self.messages = self.messages[:at]
        self._append({"$rewindTo": target.id})
        if self.has_checkpoints:
            self._checkpoint([message for message in self._with_responses() if message.id != PREAMBLE_ID])
        else:
            for message in self.messages:
                if message.calls:
                    self._append(message.wire(self.version))
        self.context = self._context_before[target.id]

    def compress(self, snapshot: str, keep: int) -> None:
        """`/compress`: a summary and the last messages, all under new ids."""
        self.wait(14)
        self._append({"$set": {"sessionId": self.id}})
        bare = [
            self._message("user", [{"text": snapshot}]),
            self._message("gemini", [{"text": "Got it. Thanks for the additional context!"}]),
        ]
        bare += [self._message(message.kind, spoken(message)) for message in self.messages[-keep:]]
        self._checkpoint([self.messages[0], *bare])
        self.context = 11_000 + token_count(snapshot)
        self._cached = 0
        self.notice("info", "")

    def fail(self, prompt: Message, fault: str) -> None:
        """Record an API error: the prompt is rolled back and the error is shown."""
        self.wait(8)
        self.context = self._context_before[prompt.id]
        kept = [m for m in self.messages if m.kind in {"user", "gemini"} and m.id != prompt.id]
        self._checkpoint([replace(m, content=spoken(m)) for m in kept])
        self.notice("error", f"[API Error: {fault}]")
        hint = 'Press F12 for diagnostics, or run /settings and change "Error Verbosity" to full for full details.'
        self.notice("info", f"This request failed. {hint}")

    def reject(self, prompt: Message, call: Call) -> None:
        """Reject the call that answers a prompt; earlier messages are recorded again, without tokens."""
        at = next(index for index, message in enumerate(self.messages) if message.id == prompt.id)
        before = [message for message in self.messages[:at] if message.kind in {"user", "gemini"}]
        self.wait(5)
        message = self._message("gemini", "")
        message.thoughts, message.model = [], self.model
        message.tokens = self._tokens("", [call], (), 0)
        self._number([call], self.now)
        self._record(message)
        self.wait(6)
        call.at = stamp(self.now)
        message.calls = [call]
        self._append(message.wire(self.version))
        self.notice("info", "Request cancelled.")
        self.context = self._context_before[prompt.id]
        fused = [*before[0].parts(), *before[1].parts()]
        again = [self._message("user", fused), *(self._again(message) for message in before[2:])]
        for message in again:
            self._record(message)
        self._checkpoint(again)

    def _again(self, message: Message) -> Message:
        copy = self._message(message.kind, spoken(message))
        copy.is_bare = True
        return copy

    def take_over(self, other: Recorder) -> None:
        """Continue the document of an older release: its messages become the first lines."""
        header = other.header() | {"lastUpdated": stamp(other.updated)}
        self.lines = [compact(header), *(compact(message.wire(other.version)) for message in other.messages)]
        self.messages = list(other.messages)
        self.context = other.context
        self._ids = other._ids

    def shell_mode(self, command: str, output: str) -> None:
        """Run a command with `!`; the model sees it."""
        self.wait(40)
        self.log(command)
        ran = f"I ran the following shell command:\n```sh\n{command}\n```"
        text = f"{ran}\n\nThis produced the following result:\n```\n{output}\n```"
        self._record(self._message("user", [{"text": text}]))

    def save_checkpoint(self, tag: str) -> None:
        """`/chat save`."""
        self.command(f"/chat save {tag}")
        DEMO.put(f"tmp/{self.project.folder(self.version)}/checkpoint-{tag}.json", pretty(self.history()))
        if self.version >= (0, 18):
            self.notice("info", f"Conversation checkpoint saved with tag: {tag}.")

    def history(self) -> Json:
        """Return the conversation in the shape of the API; an object from 0.16."""
        turns: list[Json] = [
            {"role": "user" if message.kind == "user" else "model", "parts": spoken(message)}
            for message in self.messages
            if message.kind in {"user", "gemini"}
        ]
        if self.version >= (0, 16):
            joined: list[Json] = [*self.messages[0].parts(), *self.messages[1].parts()]
            return {"history": [{"role": "user", "parts": joined}, *turns[2:]], "authType": "gemini-api-key"}
        context = "\n".join(
            [
                "This is the Gemini CLI. We are setting up the context for our chat.",
                f"Today's date is {long_date(self.started)} (formatted according to the user's locale).",
                "My operating system is: linux",
                f"I'm currently working in the directory: {self.project.root}",
                "Here is the folder structure of the current working directories:",
                f"\n{FOLDER_NOTE}\n\n{self.project.tree()}",
            ]
        )
        welcome: list[Json] = [
            {"role": "user", "parts": [{"text": context}]},
            {"role": "model", "parts": [{"text": "Got it. Thanks for the context!"}]},
        ]
        return [*welcome, *turns]

    # inside

    def _message(self, kind: Kind, content: str | Sequence[Json]) -> Message:
        self._ids += 1
        return Message(uid(f"{self.name} {self._ids}"), stamp(self.now), kind, content)

    def _number(self, calls: Sequence[Call], asked: datetime) -> None:
        turn = sum(1 for message in self.messages if message.kind == "gemini")
        for index, call in enumerate(calls):
            if self.parent:
                call.id = f"{self.id}#{turn}-{index}"
            elif self.version < (0, 29):
                tail = hashlib.sha256(f"{self.name} {asked} {index}".encode()).hexdigest()[:13]
                call.id = f"{call.name}-{epoch_ms(asked)}-{tail}"
            else:
                prefix = f"{call.name}__" if self.version >= (0, 43) else ""
                call.id = f"{prefix}{call.name}_{epoch_ms(asked)}_{index}"
            if call.limit:
                self._spill(call, call.limit)

    def _spill(self, call: Call, limit: int) -> None:
        full = str(call.response["output"])
        path = f"tmp/{self.project.slug}/tool-outputs/session-{self.id}/{call.id}.txt"
        DEMO.put(path, full)
        head, tail = limit // 5, limit - limit // 5
        notice = f"Output too large. Showing first {head:,} and last {tail:,} characters."
        where = f"For full output see: {HOME}/.gemini/{path}"
        left_out = f"... [{len(full) - limit:,} characters omitted] ..."
        call.response = {"output": f"{notice} {where}\n{full[:head]}\n\n{left_out}\n\n{full[-tail:]}"}

    def _tokens(self, text: str, calls: Sequence[Call], think: Thoughts, tool: int) -> dict[str, Json]:
        written = sum(token_count(compact([call.name, call.args])) for call in calls)
        output = (token_count(text) if text else 0) + written
        thoughts = sum(7 * token_count(subject + detail) for subject, detail in think)
        cached = min(self._cached, self.context)
        self._cached = self.context * number(f"{self.name} {self._ids}", 70, 96) // 100
        counts = {"input": self.context, "output": output, "cached": cached, "thoughts": thoughts, "tool": tool}
        return {**counts, "total": self.context + output + thoughts + tool}

    def _with_responses(self) -> list[Message]:
        """Return the conversation as the API has it, the results of tools once more under ids of their own."""
        result: list[Message] = []
        for message in self.messages:
            if message.kind not in {"user", "gemini"}:
                continue
            result.append(replace(message, content=message.parts()))
            if message.calls:
                answers = [call.result() for call in message.calls]
                result.append(Message(f"{message.id}_response", stamp(self.now), "user", answers))
        return result

    def _record(self, message: Message) -> None:
        self.messages.append(message)
        self.updated = self.now
        if self.is_log:
            self._append(message.wire(self.version))
            self._append({"$set": {"lastUpdated": stamp(self.now)}})

    def _checkpoint(self, messages: list[Message]) -> None:
        self.messages = messages
        wire = [message.wire(self.version) for message in messages]
        self._append({"$set": {"messages": wire, "lastUpdated": stamp(self.now)}})

    def _append(self, record: Json) -> None:
        self.lines.append(compact(record))


def base36(seed: str) -> str:
    """Make six characters, as the ids of older subagents have them."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[byte % 36] for byte in hashlib.sha256(seed.encode()).digest()[:6])


WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
FOLDER_NOTE = (
    "Showing up to 200 items (files + folders). Folders or files indicated with ... contain more items not shown, were "
    "ignored, or the display limit (200 items) was reached."
)


def long_date(when: datetime) -> str:
    """`Sunday, November 15, 2026`, in any locale."""
    return f"{WEEKDAYS[when.weekday()]}, {MONTHS[when.month - 1]} {when.day}, {when.year}"


def loaded_context(project: Project) -> str:
    """Wrap the project's GEMINI.md as the client does."""
    path = project.path("GEMINI.md")
    text = project.files["GEMINI.md"].strip()
    body = f"--- Context from: {path} ---\n{text}\n--- End of Context from: {path} ---"
    return f"<loaded_context>\n<project_context>\n{body}\n</project_context>\n</loaded_context>"


def session_context(project: Project, when: datetime) -> str:
    """Write the first message of every session from 0.44 on."""
    return "\n".join(
        [
            "<session_context>",
            "This is the Gemini CLI. We are setting up the context for our chat.",
            f"Today's date is {long_date(when)} (formatted according to the user's locale).",
            "My operating system is: linux",
            f"The project's temporary directory is: {HOME}/.gemini/tmp/{project.slug}",
            "- **Workspace Directories:**",
            f"  - {project.root}",
            f"- **Directory Structure:**\n\n{FOLDER_NOTE}\n\n{project.tree()}\n\n",
            loaded_context(project),
            "</session_context>",
        ]
    )


@dataclass
class Demo:
    """The files of the home, and what to say about them."""

    files: dict[str, str] = field(default_factory=dict)
    table: list[tuple[str, str, int]] = field(default_factory=list)

    def put(self, path: str, data: str) -> None:
        """Add a file."""
        if path in self.files:
            raise ValueError(f"{path} is written twice")
        self.files[path] = data

    def save(self, session: Recorder, shows: str, *, torn_at: str | None = None) -> None:
        """Add the file of a session; it may be torn at the last place of some words."""
        data = session.data
        self.put(session.file, data[: data.rindex(torn_at)] if torn_at else data)
        self.table.append((session.file, shows, session.prompts))


DEMO = Demo()
SKYWATCH = Project(f"{HOME}/src/skywatch", dict(SKYWATCH_FILES), "skywatch")
TIDE = Project(f"{HOME}/src/tide-tables", dict(TIDE_FILES), "tide-tables")
NOTES = Project(f"{HOME}/Dokumente/Büro-Notizen", dict(NOTES_FILES), "b-ro-notizen")
LEDGER = Project("C:\\Users\\mara\\src\\Ledger", dict(LEDGER_FILES), "ledger")
MOON = Project(f"{HOME}/src/moon-phase-clock", {}, "moon-phase-clock")

# The sessions, oldest first


def moon_phase_clock() -> None:
    """0.4: texts only."""
    s = Recorder("moon", MOON, (0, 4), "2025-09-18 20:14:03", model="gemini-2.5-pro", context=8_300)
    s.prompt(
        "I want to build an e-ink clock that shows the phase of the moon. ESP32, 200x200 panel, no wifi. "
        "How do I compute it?",
        pause=31,
    )
    s.answer(
        MOON_ANSWER, think=[("Choosing a method", "No network, so a mean lunation counted from a known new moon.")]
    )
    s.prompt("And how wrong is that after ten years?")
    s.answer(
        MOON_DRIFT,
        think=[
            ("Separating errors", "Mean motion, equation of the centre and the crystal are three different things.")
        ],
    )
    s.command("/quit")
    DEMO.save(s, "json 0.4: string content, no tool calls; hash folder, path proven by trustedFolders.json")


def alerts_design() -> None:
    """0.8: a change of model, and a saved conversation."""
    s = Recorder("alerts design", SKYWATCH, (0, 8), "2025-10-07 14:02:11", model="gemini-2.5-pro", context=8_900)
    s.prompt(
        "We want to warn the observers when a satellite crosses a running exposure. How would you cut this into parts?",
        pause=40,
    )
    s.answer("", s.tools.ls(), think=[("Looking around", "The code is small; I look at it before I propose anything.")])
    s.answer(
        ALERTS_DESIGN, think=[("Cutting along failures", "Sources, rules and channels fail for different reasons.")]
    )
    s.command("/model")
    s.model = "gemini-2.5-flash"
    s.prompt("does a restart lose the quiet period?")
    s.answer(ALERTS_FLASH)
    s.save_checkpoint("alerts-design")
    s.command("/quit")
    DEMO.save(s, "json 0.8: tool turn leaves only its thought; second model; checkpoint as a list")


def sidereal_bug() -> None:
    """0.11: tool calls, merged into the message before."""
    s = Recorder("sidereal", SKYWATCH, (0, 11), "2025-11-04 16:20:44", model="gemini-2.5-pro", context=9_100)
    t = s.tools
    s.prompt(
        "The plan page says M31 culminates at 22:29 UTC tonight, the paper almanac says 21:01. "
        "We are at 11 degrees east. Who is right?",
        pause=25,
    )
    s.answer(
        "The almanac, I fear. Let me look at how we compute it.",
        t.read("skywatch/visibility.py"),
        think=[("Size of the error", "88 minutes are 22 degrees, twice the longitude. That smells of a sign.")],
    )
    s.answer("", t.grep("longitude", "*.py"))
    s.answer("", t.read("skywatch/sidereal.py"))
    s.answer(
        "",
        t.edit(
            "skywatch/visibility.py",
            "360.98564736629 * days - longitude) % 360",
            "360.98564736629 * days + longitude) % 360",
            "East is positive: add the longitude.",
        ),
        think=[("Fixing the sign", "The docstring says that east is positive, the formula subtracts.")],
    )
    s.answer(
        "",
        t.edit(
            "tests/test_visibility.py",
            "from skywatch.visibility import altitude\n",
            "from skywatch.visibility import altitude, sidereal_time\n",
            "Import what the new test needs.",
        ),
        t.edit(
            "tests/test_visibility.py",
            "    assert abs(altitude(37.95, 89.26, when, 50.9, 11.0) - 50.9) < 1\n",
            "    assert abs(altitude(37.95, 89.26, when, 50.9, 11.0) - 50.9) < 1\n\n\n"
            "def test_the_sky_turns_earlier_in_the_east() -> None:\n"
            "    when = datetime(2025, 11, 4, 21, 1, tzinfo=UTC)\n"
            "    assert abs(sidereal_time(when, 11.0) - 10.68) < 1\n",
            "Add a test that fails with the old sign.",
        ),
    )
    s.answer(SIDEREAL_FIXED)
    s.prompt("run the tests please")
    s.answer(
        "",
        t.shell(
            "pytest -q",
            "..E\n==================================== ERRORS ====================================\n"
            "E   ModuleNotFoundError: No module named 'starlette'\n"
            "1 error, 2 passed in 0.31s",
            "Run the tests",
            code=1,
        ),
        think=[("Running the tests", "All of them, quietly.")],
    )
    s.answer(
        "Both visibility tests pass. The one error is older than us: `starlette` is not installed in this environment.",
    )
    s.prompt("What does our catalogue say about M31, and is it up before midnight?")
    s.answer(
        "I ask the catalogue server.",
        t.mcp(
            "catalog",
            "lookup_object",
            {"name": "M31"},
            "M31 (NGC 224), galaxy, ra 10.685, dec 41.269, mag 3.4, size 190' x 60'",
            "Look up an object in the observatory's catalogue.",
        ),
    )
    s.answer(
        "",
        t.mcp_failed(
            "catalog", "finder_chart", {"name": "M31", "field": 2.0}, "chart renderer is busy", "Draw a finder chart."
        ),
    )
    s.answer(
        "M31 is at RA 10.685°, Dec +41.269°, mag 3.4. It is above 60° from 18:15 to 23:45 UTC, so yes: the whole "
        "evening. The finder chart failed (the renderer is busy), ask again later."
    )
    s.command("/quit")
    DEMO.save(s, "json 0.11: merged tool calls, missing file, exit code 1, MCP by plain name (one fails)")


def tide_panic() -> None:
    """0.24: notices, and a title written later; copied from the hash folder to the slug folder by 0.29."""
    s = Recorder("tide panic", TIDE, (0, 24), "2026-01-20 09:11:20", model="gemini-2.5-pro", context=9_900)
    t = s.tools
    s.notice("warning", "MCP issues detected. Run /mcp list for status.")
    s.prompt("tide-tables cuxhaven panics, husum works. why?", pause=18)
    s.answer(
        "Two stations, one of them fails: that points at the data.",
        t.read("src/harmonics.rs"),
        t.read("data/cuxhaven.txt"),
        think=[("Comparing stations", "Cuxhaven must have something that Husum has not.")],
    )
    s.answer("", t.grep("unwrap", "*.rs"))
    s.answer(
        "",
        t.edit(
            "src/harmonics.rs",
            "            let speed = speed_of(&c.name).unwrap();\n"
            "            c.amplitude * (speed * hours - c.phase).to_radians().cos()\n",
            "            let Some(speed) = speed_of(&c.name) else {\n"
            '                eprintln!("{}: no speed for {}, left out", station.name, c.name);\n'
            "                return 0.0;\n"
            "            };\n"
            "            c.amplitude * (speed * hours - c.phase).to_radians().cos()\n",
            "Say which constituent is unknown instead of ending the program.",
        ),
        t.edit(
            "src/harmonics.rs",
            '        "O1" => Some(13.943_035_6),\n',
            '        "O1" => Some(13.943_035_6),\n'
            '        "M4" => Some(57.968_208_4),\n'
            '        "MS4" => Some(58.984_104_2),\n'
            '        "M6" => Some(86.952_312_7),\n',
            "Add the shallow-water constituents.",
        ),
        think=[("Two fixes", "The missing speeds, and the unwrap that turned a gap into a crash.")],
    )
    s.answer(TIDE_PANIC)
    s.prompt("great. clean the build folder and check that it compiles")
    s.answer(
        "",
        t.shell_denied("rm -rf target && cargo build --release", "Clean and build"),
        think=[("Cleaning", "The target folder can go, it is only a cache.")],
    )
    s.notice("info", "Request cancelled.")
    s.prompt("not rm -rf, use cargo clean")
    s.answer(
        "Sorry, of course.",
        t.shell(
            "cargo clean && cargo build --release 2>&1 | tail -3",
            "   Compiling chrono v0.4.42\n   Compiling tide-tables v0.3.0 (/home/mara/src/tide-tables)\n"
            "error[E0425]: cannot find function `extremes` in module `harmonics`",
            "Build",
        ),
    )
    s.answer(
        "It does not build, but not because of us: `main.rs` calls `harmonics::extremes`, which was never written. "
        "`height` itself compiles. Shall I write `extremes`?"
    )
    s.prompt("yes please")
    s.wait(7)
    s.notice("error", "[API Error: You have exhausted your daily quota on this model.]")
    s.command("/quit")
    s.summarise("Fix panic on constituents without a speed")
    DEMO.save(s, "json-notices 0.24: info, warning, error, summary, denied tool call; hash folder")
    DEMO.put(f"tmp/{TIDE.slug}/chats/{s.file.rpartition('/')[2]}", s.data)
    TIDE.logs[TIDE.slug] = list(TIDE.logs[TIDE.hash])


def ledger_money() -> None:
    """0.32 on Windows: a question to the user, file diffs."""
    s = Recorder("ledger money", LEDGER, (0, 32), "2026-03-05 18:47:30", model="gemini-3.1-pro-preview", context=10_200)
    t = s.tools
    s.prompt("Die Summe vom Februar stimmt um einen Cent nicht. Kann das am double liegen?", pause=22)
    s.answer(
        "Ja, sehr wahrscheinlich. Ich sehe nach.",
        t.read("src\\Money.cs"),
        t.read("src\\Import.cs"),
        think=[("Binäre Brüche", "0,1 ist als double nicht darstellbar; bei vielen Buchungen wird daraus ein Cent.")],
    )
    s.answer(
        "",
        t.ask(
            "Geldtyp",
            "Wie soll Geld gespeichert werden?",
            {
                "decimal": "Eingebaut, 28 Stellen, etwas langsamer",
                "long (Cent)": "Ganze Zahl, schnell, Rundung von Hand",
            },
            "decimal",
        ),
        think=[("Eine Entscheidung", "Beides geht, das soll Mara wählen.")],
    )
    s.answer(
        "",
        t.edit(
            "src\\Money.cs",
            "Money(double Amount, string Currency)",
            "Money(decimal Amount, string Currency)",
            "Use decimal.",
        ),
        t.edit(
            "src\\Import.cs",
            '        new(double.Parse(text.Replace(".", "").Replace(\',\', \'.\')), "EUR");\n',
            '        new(decimal.Parse(text, CultureInfo.GetCultureInfo("de-DE")), "EUR");\n',
            "Parse German numbers as decimal.",
        ),
        t.edit(
            "src\\Import.cs",
            "namespace Ledger;\n",
            "using System.Globalization;\n\nnamespace Ledger;\n",
            "Import the culture.",
        ),
    )
    s.answer(
        "",
        t.mcp(
            "bank",
            "month_total",
            {"account": "Verein", "month": "2026-02"},
            "2026-02 Verein: 1 284,17 EUR (63 Buchungen)",
            "Sum of a month as the bank has it.",
        ),
        t.shell("dotnet run -- sum 2026-02", "2026-02  1284,17 EUR  (63)", "Sum of February"),
    )
    s.answer("Jetzt stimmen beide: **1 284,17 EUR**, 63 Buchungen, hier und bei der Bank. Der Cent war ein `double`.")
    s.prompt("Gibt es noch andere Stellen mit double?")
    s.answer("", t.grep("double", "*.cs"))
    s.answer("Nein, keine. 🎉")
    DEMO.save(s, "json-parts 0.32: Windows path (marker lower-cased), ask_user, FileDiff, MCP by plain name")


def ledger_investigation() -> None:
    """0.34: the subagent writes a second file with the id of its parent."""
    s = Recorder(
        "ledger rounding", LEDGER, (0, 34), "2026-03-17 20:05:12", model="gemini-3.1-pro-preview", context=10_600
    )
    s.prompt(
        "Ich will Fremdwährungen einführen. Lass den Investigator erst nachsehen, wo überall Geld entsteht.", pause=30
    )
    s.now += timedelta(seconds=55)
    task = "Find every place where an amount of money is created, converted or rounded."
    child = Recorder(
        "ledger agent", LEDGER, (0, 34), "2026-03-17 20:07:02", model="gemini-3-flash-preview", context=3_300, parent=s
    )
    child.task(task)
    child.answer(
        "I start with the two files in src.",
        think=[("Exploring", "Money can only come from a constructor or from parsing.")],
    )
    child.answer("Money.cs has one constructor; now the callers.")
    child.answer("No other constructors. Rounding happens in ToString only.")
    s.answer(
        "Ich frage den Investigator.",
        s.tools.investigate(task, LEDGER_INVESTIGATION),
        think=[("Delegating", "A search over the whole code is the investigator's work.")],
        until=child.now + timedelta(seconds=1),
    )
    s.answer(
        "Geld entsteht nur in `Import.ParseAmount`, gerundet wird nur in `Money.ToString`. "
        "Damit ist der Umbau klein:\n\n"
        "1. `Money` bekommt einen Kurs nur beim *Umrechnen*, nie gespeichert.\n"
        "2. `+` mit verschiedenen Währungen wirft eine Ausnahme.\n"
        "3. Gerundet wird genau einmal, beim Umrechnen, auf den Rappen oder Cent der Zielwährung."
    )
    s.prompt("Klingt gut. Mach Schritt 2.")
    s.answer(
        "",
        s.tools.edit(
            "src\\Money.cs",
            "    public static Money operator +(Money a, Money b) => new(a.Amount + b.Amount, a.Currency);\n",
            "    public static Money operator +(Money a, Money b) => a.Currency == b.Currency\n"
            "        ? new(a.Amount + b.Amount, a.Currency)\n"
            '        : throw new InvalidOperationException($"{a.Currency} + {b.Currency}");\n',
            "Refuse to add different currencies.",
        ),
        think=[("Eine Regel", "Die Ausnahme nennt beide Währungen.")],
    )
    s.answer("Erledigt: verschiedene Währungen lassen sich nicht mehr addieren.")
    DEMO.save(s, "json-parts 0.34: parent of a flat subagent file")
    DEMO.save(child, "json-parts 0.34: flat file, kind subagent, id of the parent")


def tide_nodal() -> None:
    """0.38: todos, lists, matches, a coloured screen."""
    s = Recorder("tide nodal", TIDE, (0, 38), "2026-04-14 07:32:50", model="gemini-2.5-pro", context=11_700)
    t = s.tools
    s.prompt(
        "Our heights are 4 cm off against the official table, always in the same direction. Find out why and fix it.",
        pause=35,
    )
    s.answer(
        "I make a list first.",
        t.todos(
            ("in_progress", "Find what the official table includes"),
            ("pending", "Nodal factors"),
            ("pending", "Tests"),
        ),
        think=[
            ("A constant sign", "An error that has one sign for a year and more is no weather. It is the nodal cycle.")
        ],
    )
    s.answer("", t.ls("src"), t.glob(".rs"), t.grep("amplitude", "*.rs"))
    s.answer(
        "",
        t.search_web(
            "nodal factor M2 tide prediction 18.6 years",
            "The amplitude of M2 varies by about 3.7 % with the 18.6-year cycle of the lunar node; tables apply the "
            "factor f and the phase u once a year.",
            "example.org (https://example.org/tides/nodal)",
        ),
        tool_tokens=212,
    )
    s.answer(
        "",
        t.write(
            "src/nodal.rs",
            "/// Longitude of the ascending lunar node in degrees, `years` since 2000.\n"
            "pub fn node(years: f64) -> f64 {\n    (125.04 - 19.341_36 * years).rem_euclid(360.0)\n}\n\n"
            "/// Amplitude factor of a constituent.\n"
            "pub fn factor(name: &str, years: f64) -> f64 {\n"
            "    let cos = node(years).to_radians().cos();\n"
            "    match name {\n"
            '        "M2" | "N2" => 1.0 - 0.037 * cos,\n'
            '        "K1" => 1.006 + 0.115 * cos,\n'
            '        "O1" => 1.009 + 0.187 * cos,\n'
            "        _ => 1.0,\n    }\n}\n",
        ),
        think=[("Writing the factors", "Four lines are enough for the first order.")],
    )
    s.answer(
        "",
        t.edit(
            "src/harmonics.rs",
            "            c.amplitude * (speed * hours - c.phase).to_radians().cos()\n",
            "            let factor = nodal::factor(&c.name, hours / 8766.0);\n"
            "            factor * c.amplitude * (speed * hours - c.phase).to_radians().cos()\n",
            "Apply the nodal factor.",
        ),
        t.edit(
            "src/harmonics.rs",
            "use crate::stations::Station;\n",
            "use crate::nodal;\nuse crate::stations::Station;\n",
            "Import the factors.",
        ),
        t.edit(
            "src/main.rs",
            "mod harmonics;\nmod stations;\n",
            "mod harmonics;\nmod nodal;\nmod stations;\n",
            "Add the module.",
        ),
    )
    s.answer(
        "",
        t.shell(
            "cargo test --color always",
            "\x1b[32m   Compiling\x1b[0m tide-tables v0.3.0\n"
            "\x1b[32m    Finished\x1b[0m test profile in 1.92s\n"
            "\nrunning 3 tests\n"
            "test nodal::s2_never_changes ... \x1b[32mok\x1b[0m\n"
            "test nodal::m2_is_smallest_in_2025 ... \x1b[32mok\x1b[0m\n"
            "test harmonics::cuxhaven_april ... \x1b[31mFAILED\x1b[0m\n\n"
            "\x1b[31mtest result: FAILED\x1b[0m. 2 passed; 1 failed",
            "Run the tests",
            code=101,
        ),
    )
    s.answer(
        "The third test still expects the *old* height. It was written from our own output, so I correct the number.",
        t.shell(
            "cargo test --quiet",
            "running 3 tests\n...\ntest result: \x1b[32mok\x1b[0m. 3 passed; 0 failed",
            "Run the tests",
        ),
        t.todos(
            ("completed", "Find what the official table includes"),
            ("completed", "Nodal factors"),
            ("completed", "Tests"),
        ),
        think=[("Whose error?", "A test made from the program's output can only say that nothing has changed.")],
    )
    s.answer(TIDE_NODAL)
    s.prompt("Check the explanation of the harbour office too: https://example.org/harbour/tides")
    s.answer(
        "",
        t.fetch_missing("Summarise https://example.org/harbour/tides", "https://example.org/harbour/tides"),
    )
    s.answer("That page is not there (404). Paste the text, and I compare it.")
    s.prompt("never mind. thanks!")
    s.answer("You are welcome. The same error comes back in 2043, set a reminder.")
    s.command("/quit")
    s.summarise("Add nodal corrections to tide heights")
    DEMO.save(s, "json-parts 0.38: todos, ls, grep, web search, FileDiff, coloured screen, exit code 101")


def tide_stations() -> None:
    """0.38, resumed by 0.40: the `.json` stays, a `.jsonl` goes on, and a stub is left behind."""
    s = Recorder("tide stations", TIDE, (0, 38), "2026-04-21 19:15:08", model="gemini-3-flash-preview", context=11_800)
    s.prompt("Should the station data be files, or compiled in?", pause=26)
    s.answer(
        "Let me see how they are read now.",
        s.tools.read("src/stations.rs"),
        think=[("Weighing", "Forty stations, one binary, a boat without a network.")],
    )
    s.answer(TIDE_MEMORY)
    s.prompt("good, include_str! then. not today.")
    s.answer("Fine. When you do it: keep the folder `data/`, so that the text files stay the source.")
    s.command("/quit")
    DEMO.save(s, "json-parts 0.38: later resumed, this file stays")

    later = Recorder(
        "tide stations", TIDE, (0, 40), "2026-04-21 19:15:08", model="gemini-3-flash-preview", context=s.context
    )
    later.take_over(s)
    later.at("2026-05-04 17:40:22")
    later.stub("2026-05-04 17:40:22")
    later.resume()
    later.prompt("Today. Please compile the stations in.", pause=12)
    later.answer(
        "",
        later.tools.edit(
            "src/stations.rs",
            '    let text = std::fs::read_to_string(format!("data/{name}.txt")).ok()?;\n    Some(parse(name, &text))\n',
            "    let (_, text) = STATIONS.iter().find(|(known, _)| *known == name)?;\n    Some(parse(name, text))\n",
            "Look the station up in the compiled table.",
        ),
        later.tools.edit(
            "src/stations.rs",
            "pub struct Constituent {\n",
            "const STATIONS: &[(&str, &str)] = &[\n"
            '    ("cuxhaven", include_str!("../data/cuxhaven.txt")),\n'
            '    ("husum", include_str!("../data/husum.txt")),\n'
            "];\n\npub struct Constituent {\n",
            "Compile the stations in.",
        ),
        think=[("One table", "Names and texts side by side; the compiler checks that the files exist.")],
    )
    later.answer("Done: two stations are compiled in, a third needs one line.")
    DEMO.save(later, "jsonl 0.40: the same session, resumed into .jsonl; a header-only stub beside it")


def tide_extremes() -> None:
    """0.40: appended again and again, a subagent, a rewind."""
    s = Recorder("tide extremes", TIDE, (0, 40), "2026-05-07 08:03:41", model="gemini-3-flash-preview", context=12_100)
    t = s.tools
    s.prompt("extremes() is still missing. Let the investigator say what it has to fit into.", pause=20)
    task = "Find out how heights are computed and what `harmonics::extremes` has to return."
    child = Recorder(
        "tide agent", TIDE, (0, 40), "2026-05-07 08:04:15", model="gemini-3-flash-preview", context=3_400, parent=s
    )
    child.task(task)
    child.answer("", child.tools.ls("src"), think=[("Exploring", "First the list of files.")])
    child.answer("", child.tools.read("src/harmonics.rs"), child.tools.read("src/main.rs"))
    child.answer("", child.tools.grep("extremes", "*.rs"))
    child.answer("", child.tools.complete_task(INVESTIGATION))
    child.summarise(pretty(INVESTIGATION)[:197] + "...")
    s.answer(
        "I ask the investigator.",
        t.investigate(task, INVESTIGATION, child),
        think=[("Delegating", "It reads, I write.")],
        until=child.now + timedelta(milliseconds=20),
    )
    s.answer(
        "`extremes(&station, days)` has to return `(time, height)` pairs. I would walk in steps of 10 minutes, look "
        "for a change of slope, and refine with a parabola through three points: exact to a few seconds, and no "
        "derivative to get wrong."
    )
    wrong = s.prompt("Why not Newton's method on the derivative?")
    s.answer(
        "We can. The derivative is a sum of sines:\n\n```rust\nfn slope(station: &Station, hours: f64) -> f64 {\n"
        "    station.constituents.iter().map(|c| { /* ... */ 0.0 }).sum()\n}\n```\n\n"
        "Newton needs a start close to the root, though, and near Cuxhaven's double low water it jumps.",
        think=[("Newton", "Quadratic convergence, but double low waters give two roots close together.")],
    )
    s.command("/rewind")
    s.wait(15)
    s.rewind(wrong)
    s.prompt("OK, parabola. Write it.")
    s.answer(
        "",
        t.edit(
            "src/harmonics.rs",
            "/// Degrees per hour.\n",
            "/// High and low waters of the next days: a parabola through three heights finds the turn between them.\n"
            "pub fn extremes(station: &Station, days: u32) -> Vec<(f64, f64)> {\n"
            "    const STEP: f64 = 1.0 / 6.0;\n"
            "    let steps = (f64::from(days) * 24.0 / STEP) as usize;\n"
            "    let at = |i: usize| height(station, i as f64 * STEP);\n"
            "    (1..steps)\n"
            "        .filter_map(|i| {\n"
            "            let (a, b, c) = (at(i - 1), at(i), at(i + 1));\n"
            "            if (b - a) * (c - b) > 0.0 {\n"
            "                return None;\n"
            "            }\n"
            "            let shift = 0.5 * (a - c) / (a - 2.0 * b + c);\n"
            "            let hours = (i as f64 + shift) * STEP;\n"
            "            Some((hours, height(station, hours)))\n"
            "        })\n"
            "        .collect()\n"
            "}\n\n/// Degrees per hour.\n",
            "Add extremes().",
        ),
        think=[("Writing extremes", "Three heights, one parabola, no allocation in the loop.")],
    )
    s.answer(
        "",
        t.shell(
            "cargo run --quiet -- cuxhaven | head -4",
            "2.31  +1.58 m\n8.92  -1.41 m\n14.74  +1.61 m\n21.30  -1.38 m",
            "First four extremes",
        ),
    )
    s.answer("It runs: four extremes a day, about 6 h 12 min apart, as it should be. 🌊")
    s.command("/quit")
    s.summarise("Write extremes() for tide tables")
    DEMO.save(s, "jsonl 0.40: re-appended messages, $rewindTo, agentId, summary by $set")
    DEMO.save(child, "jsonl 0.40: nested subagent, six characters as id")


def lost_session() -> None:
    """Show a session of September that the client has deleted: only `logs.json` knows it."""
    s = Recorder("lost", SKYWATCH, (0, 61), "2026-09-24 13:07:15", model="gemini-3.5-flash")
    for text in (
        "the all-sky camera delivers frames that are rotated by 7 degrees. where do we turn them back?",
        "/model",
        "and can you write down how you found that angle? I will need it when the camera is moved",
        "/quit",
    ):
        s.wait(95)
        s.log(text)


def dome_plan() -> None:
    """0.61: a plan, a subagent, edits."""
    s = Recorder("dome plan", SKYWATCH, (0, 61), "2026-10-19 09:30:12", model="gemini-3.1-pro-preview", context=12_900)
    t = s.tools
    s.prompt(
        "I want advice about closing the dome from weather.py. Plan first, and let the investigator look at what we "
        "have.",
        pause=48,
    )
    task = "How do weather readings flow through skywatch, and where could an advice about the dome be computed?"
    child = Recorder(
        "dome agent", SKYWATCH, (0, 61), "2026-10-19 09:31:24", model="gemini-3-flash-preview", context=3_600, parent=s
    )
    child.task(task)
    child.answer("", child.tools.ls("skywatch"), think=[("Exploring", "Start with the package.")])
    child.answer("", child.tools.read("skywatch/weather.py"))
    child.answer("", child.tools.grep("is_stale", "*.py"))
    child.answer("", child.tools.complete_task(DOME_INVESTIGATION))
    child.summarise(pretty(DOME_INVESTIGATION)[:197] + "...")
    s.answer(
        "The investigator first, then a plan.",
        t.investigate(task, DOME_INVESTIGATION, child),
        think=[("Planning", "No edits before the rules are agreed: this is about a roof over a telescope.")],
        until=child.now + timedelta(milliseconds=30),
    )
    plan = f"tmp/{SKYWATCH.slug}/{s.id}/plans/dome-advice.md"
    s.answer("", t.enter_plan("Rules for the dome have to be agreed before any code"))
    plans = replace(SKYWATCH, files={}, root=f"{HOME}/.gemini/{plan.rpartition('/')[0]}")
    s.answer("", Tools(plans, s.version).write("dome-advice.md", DOME_PLAN))
    DEMO.put(plan, DOME_PLAN)
    s.answer("", t.exit_plan(f"{HOME}/.gemini/{plan}"))
    s.answer("", t.write("skywatch/dome.py", DOME_CODE), t.write("tests/test_dome.py", DOME_TESTS))
    s.answer("", t.shell("pytest -q", ".........\n9 passed in 0.42s", "Run the tests"))
    s.answer(
        "The plan is done except for the route: `advise` follows the five rules in their order, one test each.\n\n"
        "Rule 3 surprised me while testing: a *blind camera at low humidity* says **open**. Is that what you want at "
        "night?"
    )
    s.prompt("Good catch. Blind at night should always ask.")
    s.answer(
        "",
        t.edit(
            "skywatch/dome.py",
            "        return Advice.ASK if reading.humidity > 80 else Advice.OPEN\n",
            "        return Advice.ASK\n",
            "A blind camera always asks.",
        ),
    )
    s.answer("Changed. A blind camera now always asks a human, whatever the humidity.")
    s.command("/quit")
    s.summarise(
        "Plan and add advice about closing the dome",
        {
            "version": 1,
            "workflowSummary": "invoke_agent -> write_file -> replace | paths skywatch/dome.py, tests/test_dome.py",
            "toolSequence": [
                "invoke_agent",
                "enter_plan_mode",
                "write_file",
                "exit_plan_mode",
                "run_shell_command",
                "replace",
            ],
            "touchedPaths": ["skywatch/dome.py", "tests/test_dome.py"],
            "validationStatus": "passed",
        },
    )
    DEMO.save(s, "jsonl 0.61: preamble, plan mode with its file, agentId, tool responses as user messages")
    DEMO.save(child, "jsonl 0.61: nested subagent with a UUID")


def weather_store() -> None:
    """0.61: a long conversation that is compressed."""
    s = Recorder("weather store", SKYWATCH, (0, 61), "2026-10-27 13:05:33", model="gemini-3.5-flash", context=12_600)
    t = s.tools
    s.prompt(
        "The weather readings are daily CSV files. I would like something I can ask questions. What do you suggest?",
        pause=33,
    )
    s.answer("", t.read("skywatch/weather.py"), think=[("Sizing", "Two sources, one writer, a handful of readers.")])
    s.answer(STORE_ADVICE, think=[("Deciding", "A server is too much, CSV too little.")])
    s.prompt("How do we move without losing a night?")
    s.answer(STORE_MIGRATION, think=[("Traps", "Local time before March 2025, and minus one for blind.")])
    s.prompt("Write store.py.")
    s.answer("", t.write("skywatch/store.py", STORE_CODE))
    s.answer(
        "`skywatch/store.py` has `connect`, `append` and `newest`; `insert or ignore` makes a second import harmless."
    )
    s.command("/compress")
    s.compress(STATE_SNAPSHOT, keep=4)
    s.prompt("Now the importer, please.")
    s.answer(IMPORT_ANSWER, think=[("The double hour", "25 October again; fold is the only hint there is.")])
    s.save_checkpoint("weather-store")
    s.command("/quit")
    s.summarise("Move weather readings from CSV to SQLite", {"version": 1})
    DEMO.save(s, "jsonl 0.61: /compress with <state_snapshot>, checkpoint as an object")


def open_night() -> None:
    """0.61: three languages, a picture, a web search."""
    s = Recorder("open night", NOTES, (0, 61), "2026-10-30 15:44:09", model="gemini-3.8-flash", context=12_200)
    t = s.tools
    s.prompt("Bitte die Einladung auf Deutsch, Japanisch und Englisch, kurz.", pause=29)
    s.answer("", t.read("offene-nacht/einladung.md"))
    s.answer(INVITATION, think=[("Ton treffen", "Der Scherz mit dem Saturn muss in allen drei Sprachen tragen.")])
    text = "Passt das Plakat @offene-nacht/poster.png dazu?"
    s.prompt(
        text,
        parts=[
            {"text": text},
            {"text": "\n--- Content from referenced files ---"},
            {"inlineData": {"data": base64.b64encode(poster()).decode(), "mimeType": "image/png"}},
            {"text": "\n--- End of content ---"},
        ],
    )
    s.answer(
        "Ja: Kuppel, Mondsichel, Sterne, alles in vier Farben. Zwei Dinge:\n\n"
        "- Die Sichel ist die eines *abnehmenden* Mondes. Am 21. November nimmt er zu, also bitte spiegeln. 🌔\n"
        "- Es fehlt das Datum.",
        think=[("Das Bild", "Eine Kuppel im Schattenriss, darüber eine Sichel, offen nach rechts.")],
    )
    s.prompt("Ist der Saturn an dem Abend überhaupt gut zu sehen? 土星は見えますか？")
    s.answer(
        "",
        t.search_web(
            "Saturn visibility 21 November 2026 central Europe",
            "Saturn culminates in the evening of 21 November 2026 at about 40 degrees; ring tilt about 8 degrees.",
            "example.com (https://example.com/almanac/2026-11)",
        ),
        tool_tokens=188,
    )
    s.answer(SATURN_ANSWER)
    s.command("/quit")
    DEMO.save(s, "jsonl 0.61: inline PNG, CJK and emoji, web search; folder name of a non-ASCII path")


def release_notes() -> None:
    """0.61: quit and resumed within one minute."""
    s = Recorder("release notes", SKYWATCH, (0, 61), "2026-11-02 16:20:03", model="gemini-3.8-flash", context=13_000)
    t = s.tools
    s.prompt("What has changed since v0.8.2? Short, for the release notes.", pause=5)
    s.answer(
        "",
        t.shell("git log --oneline v0.8.2..", RELEASE_LOG, "Log since the tag"),
        think=[("Reading", "The log says it best.")],
    )
    s.answer(CHANGES_ANSWER)
    s.at("2026-11-02 16:20:44")
    s.resume_in_same_minute()
    s.prompt("Oops, closed the wrong window. Set the version to 0.9.0 please.", pause=6)
    s.answer("", t.edit("pyproject.toml", 'version = "0.8.2"', 'version = "0.9.0"', "Set the version."))
    s.answer("`pyproject.toml` says 0.9.0.")
    s.prompt("tag it")
    s.answer(
        "", t.shell("git commit -qam 'Release 0.9.0' && git tag v0.9.0 && git describe", "v0.9.0", "Commit and tag")
    )
    s.answer("Tagged `v0.9.0`. Nothing was pushed.")
    DEMO.save(s, "jsonl 0.61: resume in the same minute, second header, tokens only in the first lines")


RELEASE_LOG = """\
4c1b7e9 store: newest reading in one step
a90d2f1 dome: a blind camera always asks
7be3310 dome: advice from the newest reading
19f0c55 alerts: hold back per key"""


def duplicate_alerts() -> Recorder:
    """0.61: a request that fails, a conversation that is rewound."""
    s = Recorder("duplicate alerts", SKYWATCH, (0, 61), "2026-11-04 07:51:26", model="gemini-3.8-flash", context=13_100)
    t = s.tools
    s.prompt("Two false alarms last night: ticket SKY-118. What do we know?", pause=24)
    s.answer(
        "I read the ticket.",
        t.mcp(
            "tickets",
            "get_ticket",
            {"key": "SKY-118"},
            "SKY-118 open, reporter Jonas: 'low-cloud alert came twice, 22:00 and 22:04, sky was clear at 22:04'",
            "Read a ticket.",
        ),
        t.read("skywatch/alerts.py"),
        think=[("Twice", "The quiet period is 30 minutes, so the second had another key.")],
    )
    s.answer(
        "Twice within four minutes although alerts are held back for 30: the two must have had **different keys**."
    )
    failed = s.prompt("Look at the mail log of that night.")
    s.fail(failed, compact({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}))
    s.prompt("Look at the mail log of that night, please.", pause=31)
    s.answer("", t.shell("grep low-cloud /var/log/mail.log | tail -3", MAIL_LOG, "Mail log"))
    s.answer("The queue retried a greylisted mail, and so did we: two retries, two keys.")
    wrong = s.prompt("Can we just make QUIET two hours?")
    s.answer(
        "We can, it is one number. But then a *second, real* cloud at 23:00 would be held back as well, and the dome "
        "would stay open in the rain."
    )
    s.command("/rewind")
    s.wait(12)
    s.rewind(wrong)
    s.prompt("Fix the key, then close the ticket with a comment.")
    s.answer(
        "",
        t.edit(
            "skywatch/alerts.py",
            "def should_send(key: str, now: datetime) -> bool:\n",
            "def key_of(rule: str, now: datetime) -> str:\n"
            '    """The same rule in the same night is the same alert; a night ends at noon."""\n'
            "    night = (now - timedelta(hours=12)).date()\n"
            '    return f"{rule}:{night}"\n\n\n'
            "def should_send(key: str, now: datetime) -> bool:\n",
            "Make the key from the rule and the night.",
        ),
        think=[("A night, not a minute", "Noon to noon is one night for everybody who works in it.")],
    )
    s.answer(
        "",
        t.mcp_failed(
            "tickets",
            "close_ticket",
            {"key": "SKY-118", "comment": "Key is rule and night now."},
            "SKY-118 needs a reviewer before it can be closed",
            "Close a ticket.",
        ),
    )
    s.answer(DUPLICATES_FIXED + "\nThe ticket could not be closed: it wants a reviewer. Jonas?")
    s.command("/quit")
    s.summarise("Find the cause of duplicate alerts", {"version": 1, "validationStatus": "unknown"})
    DEMO.save(s, "jsonl 0.61: failed request rolled back, /rewind, MCP with prefix (one fails)")
    return s


MAIL_LOG = """\
Nov  3 21:59:58 kranich postfix/smtp[811]: low-cloud:21:59 status=deferred (451 greylisted)
Nov  3 22:00:03 kranich postfix/smtp[811]: low-cloud:22:00 status=sent (250 ok)
Nov  3 22:04:58 kranich postfix/qmgr[640]: low-cloud:21:59 status=sent (250 ok)"""


def disk_full() -> None:
    """0.61: a large output in a separate file; the last line is torn, which is what the session is about."""
    s = Recorder("disk full", SKYWATCH, (0, 61), "2026-11-06 22:48:37", model="gemini-3.8-flash", context=13_200)
    t = s.tools
    s.prompt("skywatch on kranich stopped writing readings at 22:31. sqlite says 'database or disk is full'", pause=14)
    s.answer(
        "Then let us believe it first.",
        t.shell(
            "df -h /var", "Filesystem  Size  Used Avail Use% Mounted on\n/dev/sda3    47G   47G   20K 100% /var", "Disk"
        ),
        think=[("Believing the message", "Disk first, database second.")],
    )
    sizes = [f"{number(f'frame {n}', 9_000, 12_900) / 1000:.1f}M" for n in range(200)]
    frames = "\n".join(
        f"{size}\t/var/lib/skywatch/frames/2026-10-{1 + n // 9:02d}/{n:05d}.fits" for n, size in enumerate(sizes)
    )
    listing = t.shell("du -ah /var/lib/skywatch | sort -k2", frames, "Who uses it")
    s.answer("", replace(listing, limit=4_000))
    s.answer("", t.shell("systemctl is-active skywatch-dashboard", "failed", "Is the dashboard up", code=3))
    s.answer(DISK_ANSWER, think=[("Three causes", "Frames, journal and a WAL that cannot shrink.")])
    rash = s.prompt("delete the frames older than 14 days")
    s.reject(rash, t.shell_denied("find /var/lib/skywatch/frames -mtime +14 -delete", "Delete old frames"))
    s.prompt("wait, show me the list first")
    s.answer("Of course: 200 files from 1 to 23 October, 2.2 GB in this listing alone. Say the word and I delete them.")
    DEMO.save(
        s,
        "jsonl 0.61: truncated output in tool-outputs, exit code 3, rejected call (all recorded again), torn last line",
        torn_at="lete them",
    )


def two_clients() -> None:
    """0.61: a second client cleans up the file of the first, whose log goes on without a header."""
    SKYWATCH.files["tests/test_alerts.py"] = ALERTS_TEST
    other = Recorder(
        "nightly check",
        SKYWATCH,
        (0, 61),
        "2026-11-09 06:00:02",
        model="gemini-3.5-flash",
        context=12_400,
        is_headless=True,
    )
    other.prompt("Are there open TODOs in the code? One line each.", pause=1)
    other.answer("", other.tools.grep("TODO", "*.py"))
    other.answer("None. (The TODOs are in the tickets, where they are at least dated.)")
    DEMO.save(other, "jsonl 0.61: headless, not in logs.json")

    s = Recorder("headless sibling", SKYWATCH, (0, 61), "2026-11-09 05:59:40", model="gemini-3.8-flash", context=13_000)
    s.lines.clear()
    s.at("2026-11-09 06:03:10")
    s.prompt("test_alerts passes alone and fails together with the others. Why?", pause=3)
    s.answer("", s.tools.grep("_last", "*.py"), think=[("Order", "What depends on order shares something.")])
    s.answer(HEADERLESS_ANSWER)
    s.prompt("Yes, the Sent object. But tomorrow.")
    s.answer("Tomorrow, then. The night was long enough.")
    DEMO.save(s, "jsonl 0.61: no header; the full id is in logs.json")


def team_minutes() -> None:
    """0.61: such a file is found unreadable at `/compress`; it is kept beside the new one."""
    s = Recorder("team minutes", NOTES, (0, 61), "2026-11-10 10:12:31", model="gemini-3.8-flash", context=12_300)
    s.prompt("Mach aus dem Protokoll @protokolle/2026-11-09.md eine Aufgabenliste.", parts=minutes_parts(), pause=55)
    s.answer(MINUTES_ANSWER, think=[("Wer macht was", "Jede Aufgabe braucht einen Namen und einen Tag.")])
    s.prompt("ja, gib sie mir. bis Donnerstag.")
    s.answer("Eingetragen: **Mara**, Fehlalarme von skywatch 0.9, bis Donnerstag, 12. November.")
    s.command("/compress")
    headerless = "".join(line + "\n" for line in s.lines[2:])
    s.wait(3)
    DEMO.put(f"{s.file}.unreadable-{epoch_ms(s.now)}", headerless)
    s.lines = [compact(s.header() | {"lastUpdated": stamp(s.updated)})]
    s.lines += [compact(message.wire(s.version)) for message in s.messages]
    s.compress(MINUTES_SNAPSHOT, keep=2)
    s.prompt("Und eine Zeile für den Aushang?")
    s.answer("> Kuppel quietscht bis Mittwoch, danach nicht mehr. Kakao ist in Arbeit. ☕")
    DEMO.save(s, "jsonl 0.61: written anew, the unreadable file is kept beside it")


MINUTES_SNAPSHOT = """\
<state_snapshot>
<overall_goal>Aus dem Protokoll vom 9. November eine Aufgabenliste machen.</overall_goal>
<key_knowledge>- vier Aufgaben, alle vergeben; Fehlalarme: Mara, 12. November</key_knowledge>
<current_plan>1. [DONE] Liste 2. [TODO] Aushang</current_plan>
</state_snapshot>"""


def minutes_parts() -> list[Json]:
    """Make the parts of a prompt with a file in it."""
    name = "protokolle/2026-11-09.md"
    return [
        {"text": f"Mach aus dem Protokoll @{name} eine Aufgabenliste."},
        {"text": "\n--- Content from referenced files ---"},
        {"text": f"\nContent from @{name}:\n"},
        {"text": NOTES.files[name]},
        {"text": "\n--- End of content ---"},
    ]


def imported(source: Recorder) -> None:
    """0.61 with `--session-file`: the messages of another session, with their ids and tokens, under a new id."""
    s = Recorder("imported", SKYWATCH, (0, 61), "2026-11-11 17:26:40", model="gemini-3.8-flash", context=source.context)
    kept = [message for message in source.messages if message.kind in {"user", "gemini"}]
    typed = next(message for message in kept if message.id != PREAMBLE_ID)
    first = typed.parts()[0]
    extra: dict[str, Json] = {
        "messageCount": len(kept),
        "userMessageCount": sum(1 for message in kept if message.kind == "user"),
        "firstUserMessage": first["text"] if isinstance(first, Mapping) else "",
        "hasResumableContent": True,
    }
    origin = f"{HOME}/exports/{source.file.rpartition('/')[2]}"
    notice = {"id": f"import-{epoch_ms(s.now)}", "type": "info", "content": f"Imported session from {origin}"}
    s.lines = [compact(s.header() | extra), compact(notice | {"timestamp": stamp(s.now)})]
    s.lines += [compact(message.wire(s.version)) for message in kept]
    s.messages = kept
    s.wait(0)
    s.stub("2026-11-11 17:26:41")
    s.resume()
    s.prompt("I am Jonas, reviewing SKY-118 from Mara's session. Why noon to noon and not sunset to sunrise?", pause=40)
    s.answer(
        "Because noon needs no place and no season: the key stays the same on a machine that does not know where it "
        "stands, and no night has two keys. At 50.9° north the shortest night is still well inside noon to noon."
    )
    s.prompt("Fine with me. Approved.")
    s.answer("Then SKY-118 can be closed by you; the server wants a reviewer's name, and that is yours.")
    path = f"tmp/{SKYWATCH.slug}/chats/session-{epoch_ms(s.started)}-{s.id[:8]}.jsonl"
    DEMO.put(path, s.data)
    DEMO.table.append((path, "jsonl 0.61: --session-file, ids and tokens of the source; a stub beside it", s.prompts))


def night_report() -> None:
    """0.61: resumed two days later, which leaves a stub; the client's next start would delete all of it."""
    s = Recorder("night report", SKYWATCH, (0, 61), "2026-11-12 08:15:19", model="gemini-3.8-flash", context=13_300)
    t = s.tools
    s.prompt("Write a report of the night that the day crew can read in one minute.", pause=44)
    s.answer(
        "I look at what a night leaves behind.",
        t.read("skywatch/store.py"),
        t.grep("class Reading", "*.py"),
        think=[("One minute", "Three lines: clear, damp, and what was strange.")],
    )
    s.answer("", t.write("skywatch/report.py", REPORT_CODE))
    s.answer("", t.edit("skywatch/app.py", "Route('/tonight', tonight)", "Route('/report', report)", "Add the route."))
    s.answer(
        "",
        t.edit(
            "skywatch/app.py",
            'app = Starlette(routes=[Route("/tonight", tonight)])\n',
            'async def last_night(request: Request) -> JSONResponse:\n    return JSONResponse({"report": ""})\n\n\n'
            'app = Starlette(routes=[Route("/tonight", tonight), Route("/report", last_night)])\n',
            "Add the route.",
        ),
    )
    s.answer(REPORT_ANSWER)
    s.shell_mode("git status --short", " M skywatch/app.py\n?? skywatch/report.py")
    s.command("/quit")
    s.summarise(
        "Write a one-minute report of the night",
        {
            "version": 1,
            "workflowSummary": "read_file -> write_file -> replace | paths skywatch/report.py, skywatch/app.py",
            "toolSequence": ["read_file", "grep_search", "write_file", "replace"],
            "touchedPaths": ["skywatch/store.py", "skywatch/report.py", "skywatch/app.py"],
            "validationStatus": "unknown",
        },
    )
    s.at("2026-11-14 08:41:07")
    s.stub("2026-11-14 08:41:07")
    s.resume()
    s.model = "gemini-3.1-pro-preview"
    s.prompt("They like it. What would they miss most?", pause=20)
    s.answer(
        REPORT_LATER, think=[("Breakfast", "What is asked first in the morning is what the report should say first.")]
    )
    s.prompt("1, then. Where does the exposure log live?")
    s.answer("", t.read("skywatch/exposures.py"))
    s.answer("", t.grep("exposure", "*.py"))
    s.answer(
        "Nowhere in this repository: no file, no mention. The camera computer must have it. Shall I wait for a sample?"
    )
    DEMO.save(s, "jsonl 0.61: --resume days later, _response ids, shell mode, memoryScratchpad; stub beside it")


# The rest of the home


def poster() -> bytes:
    """Draw 64 by 64 pixels in four colours: a dome, a crescent, some stars."""
    stars = {(5, 9), (14, 30), (22, 6), (33, 14), (12, 18), (58, 27), (7, 41), (28, 27), (60, 7), (52, 38)}
    rows = bytearray()
    for y in range(64):
        rows.append(0)  # no filter
        for left in range(0, 64, 4):
            byte = 0
            for x in range(left, left + 4):
                in_moon = _is_near(x, y, (46, 16), 9) and not _is_near(x, y, (50, 14), 8)
                in_slit = x in range(21, 26) and y in range(50)
                in_dome = y in range(56, 64) or (_is_near(x, y, (24, 56), 18) and not in_slit)
                byte = byte << 2 | (1 if in_dome else 2 if in_moon else 3 if (x, y) in stars else 0)
            rows.append(byte)
    palette = bytes.fromhex("101a3a 05070f f6e7a1 ffffff")
    header = struct.pack(">IIBBBBB", 64, 64, 2, 3, 0, 0, 0)
    # Stored, not squeezed: other builds of zlib squeeze to other bytes.
    chunks = [(b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(bytes(rows), 0)), (b"IEND", b"")]
    packed = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _is_near(x: int, y: int, centre: tuple[int, int], radius: int) -> bool:
    return (x - centre[0]) ** 2 + (y - centre[1]) ** 2 < radius**2


def registry() -> None:
    """Add what the client writes beside the sessions."""
    projects = [LEDGER, TIDE, SKYWATCH, NOTES]
    DEMO.put("projects.json", pretty({"projects": {project.marker(): project.slug for project in projects}}))
    trusted = {project.root: "TRUST_FOLDER" for project in (MOON, SKYWATCH, TIDE, NOTES)}
    DEMO.put("trustedFolders.json", pretty(trusted))
    settings: Json = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "ui": {"theme": "Atom One"},
        "tools": {"truncateToolOutputThreshold": 4000},
    }
    DEMO.put("settings.json", pretty(settings))
    for project in projects:
        DEMO.put(f"tmp/{project.slug}/.project_root", project.marker())
        DEMO.put(f"history/{project.slug}/.project_root", project.marker())
    for project in (MOON, *projects):
        for folder, entries in project.logs.items():
            DEMO.put(f"tmp/{folder}/logs.json", pretty(entries))
    DEMO.put(
        f"tmp/{SKYWATCH.slug}/shell_history",
        "git log --oneline -5\npytest -q\njournalctl -u skywatch -n 20\ngit status --short",
    )
    DEMO.put(f"tmp/{TIDE.slug}/shell_history", "cargo test\ncargo run -- husum")


def main() -> None:
    """Write the home anew and print what is in it."""
    moon_phase_clock()
    alerts_design()
    sidereal_bug()
    tide_panic()
    ledger_money()
    ledger_investigation()
    tide_nodal()
    tide_stations()
    tide_extremes()
    lost_session()
    dome_plan()
    weather_store()
    open_night()
    release_notes()
    alerts = duplicate_alerts()
    disk_full()
    two_clients()
    team_minutes()
    imported(alerts)
    night_report()
    registry()
    shutil.rmtree(OUT, ignore_errors=True)
    for name, data in sorted(DEMO.files.items()):
        path = OUT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode())
    for name, shows, prompts in DEMO.table:
        print(f"{name}  {shows}  {prompts}")
    print(f"{len(DEMO.files)} files, {sum(len(data.encode()) for data in DEMO.files.values()):,} bytes in {OUT}")


if __name__ == "__main__":
    main()
