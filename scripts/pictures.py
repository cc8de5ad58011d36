"""Take the pictures of the documentation: pages of the viewer on the sample sessions, in a real Chromium.

`python -m scripts.pictures` needs Node.js, Chromium and what `make test-web` installs in `build/browser`. Pictures are
WebP, which the browser itself writes: half the size of its PNG.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("POLLUX_BROWSER", str(_ROOT / "build" / "browser"))  # read when the next modules are imported

from tests.web.browser.driving import BrowserTab, launched, why_not  # noqa: E402
from tests.web.browser.serving import serving  # noqa: E402

IMAGES = _ROOT / "docs" / "images"
PAGES = {
    "viewer-overview": "",
    "viewer-session": "s/602c50c2",
    "viewer-search": "search?q=alerts",
    "viewer-usage": "usage?last=1y&by=month",
}
"""Paths below the label, by the name of their picture."""
WIDTH, HEIGHT = 1280, 860
MOST_BYTES = 100_000
_ENCODE = """
(async () => {
  const picture = new Image();
  picture.src = "data:image/png;base64," + PNG;
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/webp", 0.8).split(",")[1];
})()
"""


def main() -> int:
    """Write the pictures; return 1 if a picture cannot be taken or is too large for a page of documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=IMAGES)
    folder = parser.parse_args().folder
    if reason := why_not():
        print(f"Cannot take pictures: {reason}", file=sys.stderr)
        return 1
    too_large = []
    with tempfile.TemporaryDirectory() as room, serving(Path(room) / "served") as served, launched() as browser:
        for name, page in PAGES.items():
            path = folder / f"{name}.webp"
            with served.tab(browser, width=WIDTH, height=HEIGHT) as tab:
                tab.go(page)
                tab.wait("document.readyState === 'complete'")
                path.write_bytes(_picture(tab, Path(room) / "shot.png"))
            size = path.stat().st_size
            print(f"{path.name}: {size:,} bytes")
            if size > MOST_BYTES:
                too_large.append(path.name)
    if too_large:
        print(f"More than {MOST_BYTES:,} bytes: {', '.join(too_large)}", file=sys.stderr)
    return 1 if too_large else 0


def _picture(tab: BrowserTab, shot: Path) -> bytes:
    """Return what a tab shows, as WebP."""
    tab.shot(shot)
    png = json.dumps(base64.b64encode(shot.read_bytes()).decode())
    return base64.b64decode(tab.tell(_ENCODE.replace("PNG", png)))


if __name__ == "__main__":
    sys.exit(main())
