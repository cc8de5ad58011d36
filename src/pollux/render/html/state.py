"""What the renderers of a page share: where they are, and what its navigation will list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from pollux.model import Attachment
from pollux.render.html.markdown import link
from pollux.render.html.markup import Html, element
from pollux.views import attachments


class Entry(NamedTuple):
    """A prompt in the navigation."""

    anchor: str
    number: int
    words: str
    clock: str
    fate: str
    """Empty for what is active."""


@dataclass(slots=True)
class Sheet:
    """A page while it is written."""

    prompts: list[Entry] = field(default_factory=list)
    model: str | None = None
    """The one that spoke last: only another one is worth a word."""
    prefix: str = "m"
    """What the anchors of messages begin with; those of agents have their own."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """For agents and files."""

    def anchor(self, number: int) -> str:
        """Name the place of a message."""
        return f"{self.prefix}{number}"

    def within(self) -> Sheet:
        """Begin the transcript of an agent within this one."""
        return Sheet(prefix=f"a{next(self.numbers)}m", numbers=self.numbers)

    def attachment(self, attachment: Attachment) -> Html:
        """Show a picture; anything else can be taken out of the page as a file."""
        words = attachments.words(attachment)
        data = attachments.data(attachment)
        if data is None:
            address = attachments.web_address(attachment.uri)
            return element("p", "▣ ", link(words, address) if address else words, class_="file")
        if attachments.is_picture(attachment):
            kind = attachment.media_type.partition(";")[0].strip().lower()
            picture = element("img", src=f"data:{kind};base64,{attachment.data}", alt=words, decoding="async")
            return element("figure", picture, element("figcaption", words))
        name = attachments.name(attachment, next(self.numbers))
        # Whatever it says that it is: a browser is only to save it.
        target = f"data:application/octet-stream;base64,{attachment.data}"
        return element("p", "▣ ", element("a", name, href=target, download=name), f" {words}", class_="file")
