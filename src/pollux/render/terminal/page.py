"""What a renderer needs to know of the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from pollux.render.terminal.text import encodable
from pollux.reports.periods import local
from pollux.text.escape import clean
from pollux.views.transcript import Block, LeftOut


@dataclass(frozen=True, slots=True)
class Page:
    """A terminal as renderers see it: its time and its characters."""

    zone: tzinfo | None
    encoding: str

    @property
    def is_unicode(self) -> bool:
        """Whether it has characters for everything."""
        return self.encoding.lower().startswith("utf")

    def text(self, text: str) -> str:
        """Make a text fit for it; lines stay lines."""
        return encodable(clean(text), self.encoding)

    def line(self, text: str) -> str:
        """Make a text fit for one line of it."""
        return self.text(" ".join(text.split()))

    def clock(self, at: datetime | None) -> str:
        """Say a time of day."""
        return f"{local(at, self.zone):%H:%M}" if at else ""

    def day(self, block: Block) -> date | None:
        """Tell the day of a block, if it has one."""
        at = None if isinstance(block, LeftOut) else block.at
        return local(at, self.zone).date() if at else None
