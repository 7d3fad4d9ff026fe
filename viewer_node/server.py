# SPDX-License-Identifier: Apache-2.0
"""The web server of the page, on exactly the requested address."""

from __future__ import annotations

import contextlib
import http
import io
import socket
from collections.abc import Iterator
from typing import Any

import viser

from quad_dynamics.errors import ArgumentError
from viewer_node.keys import HEADER, KeyRequests
from viewer_node.origin import own_pages_only
from viewer_node.serving import port_is_taken


class PageServer(viser.ViserServer):  # type: ignore[misc, unused-ignore]
    """A server that is never shared over the internet, even if a page requests it.

    Attributes:
        keys: what pages say about arrow keys.
    """

    keys: KeyRequests

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Reject: viser would open a tunnel through a public server."""
        return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the output of viser."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def start_server(host: str, port: int, title: str) -> PageServer:
    """Serve the page.

    Args:
        host: address.
        port: 0 takes a free one.
        title: of the page.

    Raises:
        ArgumentError: the address does not belong to this machine, or the port is not allowed.
        CannotServeError: the port is in use.
    """
    _check_address(host, port)
    keys = KeyRequests(host)

    def answer(request: Any) -> http.HTTPStatus | None:
        return keys.answer(request.path, request.headers.get_all(HEADER), request.headers.get_all('Host'))

    with _quiet(), own_pages_only(host, answer):
        server = PageServer(host=host, port=port, label=title, verbose=False)
    server.keys = keys
    if port not in (0, server.get_port()):  # viser takes the next one that is free
        stop_server(server)
        raise port_is_taken(host, port)
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Stop the server and its threads."""
    with _quiet():
        server.stop()


def address_of(server: viser.ViserServer) -> str:
    """Where the page is."""
    host = server.get_host()
    if host in ('0.0.0.0', '::', ''):
        host = 'localhost'
    return f'http://{f"[{host}]" if ":" in host else host}:{server.get_port()}'


def _check_address(host: str, port: int) -> None:
    """Try the address, because viser would wait forever for one that is not available."""
    try:
        infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in infos:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen(1)
    except PermissionError as error:
        raise ArgumentError(
            f'port {port} of {host} is not allowed; expected a port above 1023, or 0'
        ) from error
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno not in (98, 48):
            raise ArgumentError(
                f'host {host!r}: {error.strerror or error}; expected an address of this machine'
            ) from error
        raise port_is_taken(host, port) from error
