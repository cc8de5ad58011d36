"""Serve the style sheets and scripts, under names that change with their content."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pollux.web.static_names import asset_content, asset_name, asset_names

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Return the contents and the media type of each file by the name under which it is served."""
    files = {}
    for name in asset_names():
        media_type = _MEDIA_TYPES.get(PurePath(name).suffix)
        if media_type is not None:
            files[asset_name(name)] = (asset_content(name), media_type)
    return files


async def static_file(request: Request) -> Response:
    """Return a file of the table; no other name leads to a file, whatever it looks like."""
    name = request.path_params["name"]
    if name not in static_files():
        raise HTTPException(404)
    content, media_type = static_files()[name]
    return Response(content, headers=_FOR_EVER, media_type=media_type)


ROUTES = (Route("/static/{name}", static_file),)
