# SPDX-License-Identifier: Apache-2.0
"""Restricts access to the server to its own pages; other pages in the same browser are rejected."""

from __future__ import annotations

import contextlib
import http
import importlib
import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_websockets: Any = importlib.import_module('websockets.asyncio.server')  # what viser serves with


def is_own_page(origins: Sequence[str], hosts: Sequence[str], address: str) -> bool:
    """Whether a request comes from a page of this server, or from no page at all.

    Args:
        origins: `Origin` headers of the request. Browsers send one with every websocket; programs send none.
        hosts: headers `Host` of the request.
        address: that is served.
    """
    if not origins:
        return True
    if len(origins) != 1 or len(hosts) != 1:
        return False
    _, _, origin = origins[0].lower().partition('://')
    if origin != hosts[0].lower():
        return False
    # Any site can give a name of its own the address 127.0.0.1, and is then its own host.
    return not _is_loopback(address) or _is_loopback(re.sub(r':\d+$', '', origin).strip('[]'))


def _is_loopback(name: str) -> bool:
    try:
        return name == 'localhost' or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


Answer = Callable[[Any], http.HTTPStatus | None]  # to a request; None: viser answers it


@contextlib.contextmanager
def own_pages_only(address: str, answer: Answer | None = None) -> Iterator[None]:
    """Make the server that viser starts in this context reject pages of other sites, and answer requests.

    viser has no option for this and hides its server, so the function that creates it is replaced.

    Args:
        address: that is served.
        answer: to requests of its own pages.

    Raises:
        RuntimeError: this version of viser creates its server in another way, and would reject nothing.
    """
    serve = _websockets.serve
    calls = 0

    def guarded_serve(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
        nonlocal calls
        calls += 1

        def check(connection: Any, request: Any) -> Any:
            headers = request.headers
            if not is_own_page(headers.get_all('Origin'), headers.get_all('Host'), address):
                return connection.respond(
                    http.HTTPStatus.FORBIDDEN, 'only pages of this server are allowed\n'
                )
            status = answer(request) if answer is not None else None
            if status is not None:
                return connection.respond(status, '')
            return process_request(connection, request) if process_request is not None else None

        return serve(*arguments, process_request=check, **options)

    _websockets.serve = guarded_serve
    try:
        yield
    finally:
        _websockets.serve = serve
    if not calls:
        raise RuntimeError('cannot restrict this version of viser to its own pages; expected version 1.1')
