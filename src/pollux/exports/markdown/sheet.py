"""The files that belong to a Markdown document: pictures and other attachments are put beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from urllib.parse import quote

from pollux.exports.markdown.escape import plain
from pollux.exports.source import Subject
from pollux.model import Attachment
from pollux.views import attachments


@dataclass(frozen=True, slots=True)
class Sheet:
    """What renderers need to know of the document they write."""

    subject: Subject
    numbers: Iterator[int]
    """For the names of files, in order over all parts."""
    is_beside: bool = False
    """Whether this document is itself one of those beside the first."""

    def attachment(self, attachment: Attachment) -> str:
        """Refer to a picture or a file, and put it beside if it is there."""
        words = plain(attachments.words(attachment))
        data = attachments.data(attachment)
        if data is None or self.subject.beside is None:
            if data is not None:
                self.subject.losses["pictures and files"] += 1
            address = attachments.web_address(attachment.uri)
            return f"▣ [{words}](<{address}>)" if address else f"▣ {words}"
        place = self.subject.beside(attachments.name(attachment, next(self.numbers)), data)
        target = quote(place.rpartition("/")[2] if self.is_beside else place)
        return f"{'!' if attachments.is_picture(attachment) else '▣ '}[{words}]({target})"


def new_sheet(subject: Subject) -> Sheet:
    """Begin a document."""
    return Sheet(subject, count(1))
