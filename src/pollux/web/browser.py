"""Open a file in the user's browser."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path


def open_in_browser(path: Path) -> bool:
    """Open a file in a window of the browser, in the background; return False if there is no such browser.

    A browser that runs in the terminal is not started: it would hide what Pollux prints there.
    """
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:
        return False
    threading.Thread(target=browser.open, args=(path.absolute().as_uri(),), daemon=True).start()
    return True
