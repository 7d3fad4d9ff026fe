# SPDX-License-Identifier: Apache-2.0
"""The page and its server, without ROS and without a browser: fed by the simulator, read as a page reads."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='viser is not installed')
import viser
from cases import load
from page_client import PageClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import quad_dynamics as qd
from quad_dynamics.errors import ArgumentError
from quad_dynamics.planning.gait import GAITS
from quad_dynamics.simulation import gaits
from viewer_node.body_meshes import body_meshes
from viewer_node.markers import Marker
from viewer_node.origin import is_own_page, own_pages_only
from viewer_node.page import Page
from viewer_node.panel import Action
from viewer_node.robot_view import BodyMeshes
from viewer_node.server import PageServer, address_of, start_server, stop_server
from viewer_node.serving import CannotServeError
from viewer_node.settings import ViewerSettings
from viewer_node.status import Line


@pytest.fixture
def server() -> Iterator[PageServer]:
    made = start_server('127.0.0.1', 0, 'test')
    yield made
    stop_server(made)


def wait_until(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_page_is_served_on_loopback(server: PageServer) -> None:
    with urllib.request.urlopen(address_of(server), timeout=10.0) as answer:
        assert answer.status == 200
        assert len(answer.read()) > 10_000
    inner = server._websock_server
    assert inner._host == '127.0.0.1'


def test_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotServeError, match=f'port {port} of 127.0.0.1 is in use'):
            start_server('127.0.0.1', port, 'test')


def test_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"host '192.0.2.1'.*expected an address of this machine"):
        start_server('192.0.2.1', 0, 'test')
    with pytest.raises(ArgumentError, match='host'):
        start_server('no such host', 0, 'test')


def test_page_cannot_be_shared_with_the_internet(server: PageServer) -> None:
    assert server.request_share_url() is None


@pytest.mark.parametrize('origin', ['http://evil.example', 'http://127.0.0.1:1', 'null', 'http://[', ''])
def test_page_of_another_site_is_refused(server: PageServer, origin: str) -> None:
    where = address_of(server)
    protocol: Any = [f'viser-v{viser.__version__}']
    with pytest.raises(InvalidStatus) as refused:
        connect(where.replace('http', 'ws'), subprotocols=protocol, additional_headers={'Origin': origin})
    assert refused.value.response.status_code == 403
    assert server.get_clients() == {}
    with connect(where.replace('http', 'ws'), subprotocols=protocol, origin=where) as own:  # type: ignore[arg-type]
        assert own.recv(timeout=10.0)
    with pytest.raises(urllib.error.HTTPError, match='403'):
        urllib.request.urlopen(urllib.request.Request(where, headers={'Origin': origin}), timeout=10.0)


@pytest.mark.parametrize(
    ('origins', 'hosts', 'address', 'expected'),
    [
        ([], ['localhost:8080'], '127.0.0.1', True),
        (['http://localhost:8080'], ['localhost:8080'], '127.0.0.1', True),
        (['http://localhost:9000'], ['localhost:9000'], '127.0.0.1', True),  # through a tunnel
        (['http://[::1]:8080'], ['[::1]:8080'], '::1', True),
        (['http://LocalHost'], ['localhost'], 'localhost', True),
        (['http://localhost:3000'], ['localhost:8080'], '127.0.0.1', False),
        (['http://evil.example:8080'], ['evil.example:8080'], '127.0.0.1', False),  # its name means 127.0.0.1
        (['http://robot.lan:8080'], ['robot.lan:8080'], '0.0.0.0', True),
        (['http://evil.example'], ['robot.lan:8080'], '0.0.0.0', False),
        (['http://localhost:8080'] * 2, ['localhost:8080'], '127.0.0.1', False),
        (['http://localhost:8080'], [], '127.0.0.1', False),
    ],
)
def test_whose_pages_are_served(origins: list[str], hosts: list[str], address: str, expected: bool) -> None:
    assert is_own_page(origins, hosts, address) is expected


def test_server_that_cannot_be_guarded_is_named() -> None:
    with pytest.raises(RuntimeError, match='cannot restrict this version'), own_pages_only('127.0.0.1'):
        pass


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    server = start_server('127.0.0.1', 0, 'test')
    stop_server(server)
    assert capfd.readouterr() == ('', '')


def test_page_shows_a_simulation(server: PageServer) -> None:
    model = load('mini_cheetah')
    page = Page(server, ViewerSettings())
    page.show_robot(model, body_meshes(model))
    sim = qd.Simulator(model)
    sim.reset(sim.standing())
    pose = sim.standing()[7:] + 0.1
    hold = gaits.hold(model, q=np.concatenate([sim.standing()[:7], pose]))
    with PageClient(address_of(server)) as client:
        wait_until(lambda: page.is_open)
        for _ in range(20):
            sim.run(hold, 0.02)
            q = sim.q
            with server.atomic():
                page.place_robot(q[:3], q[[6, 3, 4, 5]])
                page.bend_robot(q[7:])
                foot = Marker(ns='forces', type=2, position=q[:3].copy())
                assert page.markers['markers'].take([foot], 0.0) == []
                assert page.draw(0.0) == []
                page.plots.add(sim.time, np.zeros(12), np.full(8, np.nan), q[2])  # type: ignore[union-attr]
                page.plots.draw()  # type: ignore[union-attr]
            page.panel.know_layers(page.layers)
            time.sleep(0.02)
        wait_until(lambda: client.of_type('SetOrientationMessage'))
        names = {message['name'] for message in client.of_type('SetOrientationMessage')}
        assert any(name.endswith('FL_calf') for name in names)
        assert len(client.of_type('GlbMessage')) == model.nb
        updates = [message for message in client.of_type('GuiUpdateMessage') if 'data' in message['updates']]
        assert updates
        assert page.layers == [('markers', 'forces')]
    wait_until(lambda: not page.is_open)


def test_camera_follows_by_moving_the_world(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    page.place_robot(np.array([3.0, -2.0, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]))
    page.draw(0.0)
    assert np.allclose(page._world.position, [-3.0, 2.0, 0.0])
    page.panel.follow.value = False
    page.place_robot(np.array([9.0, 9.0, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]))
    page.draw(0.0)
    assert np.allclose(page._world.position, [-3.0, 2.0, 0.0])


def test_sliders_are_zero_after_a_page_is_closed(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    with PageClient(address_of(server)) as client:
        wait_until(lambda: page.is_open)
        slider = page.panel.walk._sliders[2]._impl.uuid
        client.send(type='GuiUpdateMessage', uuid=slider, updates={'value': 0.5})
        wait_until(lambda: page.panel.walk.velocity == (0.0, 0.0, 0.5))
    wait_until(lambda: page.panel.walk.velocity == (0.0, 0.0, 0.0))


def test_grid_gives_way_to_ground(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    page.draw(0.0)
    assert page._grid.visible
    page.markers['terrain'].take([Marker(type=1, position=np.array([0.0, 0.0, 0.1]))], 0.0)
    page.draw(0.0)
    assert not page._grid.visible


def test_what_the_user_does_becomes_an_action(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    panel = page.panel
    with PageClient(address_of(server)) as client:
        wait_until(lambda: page.is_open)
        client.send(type='GuiUpdateMessage', uuid=panel._time._impl.uuid, updates={'value': 'Step'})
        action = panel.actions.get(timeout=10.0)
        assert (action.name, action.value) == ('step', None)
        client.send(type='GuiUpdateMessage', uuid=panel._contact._impl.uuid, updates={'value': 'impulse'})
        action = panel.actions.get(timeout=10.0)
        assert (action.name, action.value) == ('contact', 'impulse')
        panel.know_choice('contact', 'none')  # what a node says is no action of the user
        panel.know_choice('mode', 'a mode of the future')
        assert panel._mode.value == 'a mode of the future'
        panel.know_paused(True)
        assert 'Resume' in panel._time.options
    assert panel.actions.empty()


def test_status_cannot_bring_html_into_the_page(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    page.panel.know_robot('<i>robot', '"><script>')
    page.panel.say([Line('<script>alert(1)</script>'), Line('<b>', 'error')])
    assert '<script>' not in page.panel._status.content
    assert '&lt;b&gt;' in page.panel._status.content
    assert '&lt;i&gt;robot' in page.panel._status.content


def scripts(client: PageClient) -> str:
    return ' '.join(message['source'] for message in client.of_type('RunJavascriptMessage'))


def test_page_has_the_name_of_the_robot(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    model = load('two_link_arm')
    with PageClient(address_of(server)) as client:
        wait_until(lambda: 'document.title = "quad_dynamics"' in scripts(client))
        page.show_robot(model, BodyMeshes({}, 0.5, ()))
        page.panel.say([])
        wait_until(lambda: f'document.title = "{model.name} ' in scripts(client))
    assert model.name in page.panel._status.content


def test_walk_controls_are_hidden_until_somebody_obeys(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    walk = page.panel.walk
    assert not walk.is_shown
    with PageClient(address_of(server)) as client:
        page.show_walk(True, False)
        assert walk.is_shown
        assert not any(row.visible for row in walk._gaits)
        wait_until(lambda: 'window.quadDynamicsDrives = true' in scripts(client))
        walk._sliders[0].value = 0.5
        page.show_walk(True, True)
        assert all(row.visible for row in walk._gaits)
        assert walk.velocity[0] == 0.5
        page.show_walk(False, False)
        assert not walk.is_shown
        assert walk.velocity == (0.0, 0.0, 0.0)  # nothing is commanded that cannot be seen
        wait_until(lambda: 'window.quadDynamicsDrives = false' in scripts(client))


def test_gaits_are_buttons_in_rows_that_can_be_read(server: PageServer) -> None:
    rows = [tuple(row.options) for row in Page(server, ViewerSettings()).panel.walk._gaits]
    assert [name for row in rows for name in row] == list(GAITS)
    assert max(map(len, rows)) <= 3
    assert max(map(len, rows)) - min(map(len, rows)) <= 2


def test_sliders_and_keys_go_as_far_as_the_robot(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    walk = page.panel.walk
    walk.steer((1, 0, 0), 0.0)
    assert walk.velocity == (0.0, 0.0, 0.0)  # nobody obeys
    page.show_walk(True, True)
    walk._sliders[0].value = 1.0
    walk.know_limits((0.93, 0.4, 2.36))
    assert walk.velocity[0] == pytest.approx(0.9)
    assert [slider.max for slider in walk._sliders] == pytest.approx([0.9, 0.4, 2.35])
    walk._share.value = 50.0
    walk.steer((-1, 0, 1), 10.0)
    assert walk.velocity == pytest.approx((-0.45, 0.0, 1.175))
    walk.watch(10.3)
    assert any(walk.velocity)
    walk.watch(10.5)  # the page is silent, though it said nothing about a release
    assert walk.velocity == (0.0, 0.0, 0.0)
    walk.steer((0, 1, 0), 11.0)
    walk.steer((0, 0, 0), 11.1)
    assert walk.velocity == (0.0, 0.0, 0.0)
    walk._sliders[0].value = 0.2
    walk.watch(1e6)  # sliders stay where they are
    assert walk.velocity[0] == 0.2


def ask(where: str, query: str, **headers: str) -> int:
    """Status of a request about arrow keys."""
    request = urllib.request.Request(f'{where}/drive{query}', headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10.0) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_arrow_keys_come_from_own_pages_alone(server: PageServer) -> None:
    page, where = Page(server, ViewerSettings()), address_of(server)
    own = {'X-Quad-Dynamics': 'drive'}
    good = '?forward=1&left=0&turn=-1&page=a&at=5.0'
    assert ask(where, good, **own) == 204
    assert page.panel.actions.get(timeout=5.0) == Action('steer', (1, 0, -1))
    assert ask(where, good.replace('5.0', '4.0').replace('turn=-1', 'turn=0'), **own) == 204  # overtaken
    assert page.panel.actions.empty()
    assert ask(where, good) == 403  # as an image of another page would ask
    assert ask(where, good, Host='evil.example', **own) == 403
    assert ask(where, good, Origin='http://evil.example', **own) == 403
    for bad in ('', '?forward=2&left=0&turn=0&page=a&at=9', '?forward=1&left=0&page=a&at=9', '?forward=x'):
        assert ask(where, bad, **own) == 400
    assert page.panel.actions.empty()


def test_push_that_is_set_up_is_shown_as_an_arrow(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    yaw = 0.5
    page.place_robot(np.array([1.0, 2.0, 0.3]), np.array([np.cos(yaw / 2.0), 0.0, 0.0, np.sin(yaw / 2.0)]))
    page.draw(time.monotonic())
    assert page._preview._handle is None  # not before the user wants to push
    with PageClient(address_of(server)) as client:
        wait_until(lambda: page.is_open)
        uuid = page.panel._direction._impl.uuid
        client.send(type='GuiUpdateMessage', uuid=uuid, updates={'value': 'forward'})
        wait_until(lambda: page.panel.push_set > 0.0)
    page.draw(page.panel.push_set + 1.0)
    start, end = page._preview._handle.points[0]
    assert page._preview._handle.visible
    assert np.allclose(start, (1.0, 2.0, 0.3))
    assert np.allclose(
        (end - start) / np.linalg.norm(end - start), (np.cos(yaw), np.sin(yaw), 0.0), atol=1e-6
    )
    page.draw(page.panel.push_set + 10.0)
    assert not page._preview._handle.visible


def test_camera_follows_hills_but_not_steps_and_can_be_sent_back(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    for height, moves in ((0.3, False), (3.0, True), (-3.0, True)):
        page._offset[:] = 0.0
        page.place_robot(np.array([5.0, -1.0, height]), upright)
        for i in range(200):
            page.draw(float(i))
        assert np.allclose(page._world.position[:2], (-5.0, 1.0))
        assert (page._world.position[2] != 0.0) == moves
        assert abs(page._world.position[2] + height) <= page._radius + 1e-3
    page.panel.follow.value = False
    page.place_robot(np.array([7.0, -1.0, 0.3]), upright)
    with PageClient(address_of(server)) as client:
        wait_until(lambda: page.is_open)
        uuid = page.panel._look._impl.uuid
        client.send(type='GuiUpdateMessage', uuid=uuid, updates={'value': True})
        action = page.panel.actions.get(timeout=10.0)
        assert action.name == 'look'
        page.look_at_robot(action.value)
        seen = np.array([7.0, -1.0, 0.3]) + page._world.position  # where the robot is drawn
        assert np.linalg.norm(np.array(action.value.camera.look_at)[:2] - seen[:2]) < page._radius


def test_force_of_a_push_fits_the_robot(server: PageServer) -> None:
    page = Page(server, ViewerSettings())
    page.panel.know_weight(500.0)
    assert page.panel.push == pytest.approx((0.0, 250.0, 0.0))
