# SPDX-License-Identifier: Apache-2.0
"""Receives messages for a node, in the calling thread.

rclpy's executors build a new wait set for every message and run callbacks as tasks; at 500 messages a second
this is most of the CPU time of a node. A `Mailbox` keeps one wait set and takes messages from the handles
itself. Those are inner names of rclpy, the same from Humble to Jazzy; where they are missing,
`ExecutorMailbox` does the same with rclpy's SingleThreadedExecutor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from rclpy.node import Node

# Longest single wait [s], so that signals and a shut-down context are noticed.
_LONGEST_WAIT = 0.05
# Most messages of one subscription that are taken in a row, so that a flood does not starve the others.
MOST_AT_ONCE = 200

ErrorHandler = Callable[[Exception], None]


def _raise(error: Exception) -> None:
    raise error


class Mailbox:
    """Serves all subscriptions, services and clients of a node, including those created later."""

    def __init__(self, node: Node, on_error: ErrorHandler | None = None) -> None:
        """Receive for a node; it must not be added to an executor.

        Args:
            node: of rclpy.
            on_error: called with exceptions of callbacks; None: they propagate.
        """
        self.node = node
        self._on_error = on_error or _raise
        self._wait_set: Any = None
        self._sizes: tuple[int, int, int] = (-1, -1, -1)

    def take(self, subscription: Any) -> int:
        """Run the callback of one subscription for each pending message; return how many."""
        handle, kind, raw = subscription.handle, subscription.msg_type, subscription.raw
        for count in range(MOST_AT_ONCE):
            message = handle.take_message(kind, raw)
            if message is None:
                return count
            self._call(subscription.callback, message[0])
        return MOST_AT_ONCE

    def poll(self) -> int:
        """Run all pending callbacks without waiting; return how many ran."""
        node = self.node
        return (
            sum(map(self.take, node.subscriptions))
            + sum(map(self._serve, node.services))
            + sum(map(self._answer, node.clients))
        )

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives or the time has passed, and run callbacks; whether any ran."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if self._wait(min(max(left, 0.0), _LONGEST_WAIT)):
                return True
            if left <= _LONGEST_WAIT or not self.node.context.ok():
                return False

    def _wait(self, seconds: float) -> bool:
        node = self.node
        subscriptions, services, clients = list(node.subscriptions), list(node.services), list(node.clients)
        wait_set = self._empty_wait_set((len(subscriptions), len(clients), len(services)))
        indices = [wait_set.add_subscription(one.handle) for one in subscriptions]
        client_indices = [wait_set.add_client(one.handle) for one in clients]
        service_indices = [wait_set.add_service(one.handle) for one in services]
        wait_set.wait(int(seconds * 1e9))
        ready = _ready(wait_set, 'subscription', subscriptions, indices)
        count = sum(map(self.take, ready))
        count += sum(map(self._answer, _ready(wait_set, 'client', clients, client_indices)))
        count += sum(map(self._serve, _ready(wait_set, 'service', services, service_indices)))
        return count > 0

    def _empty_wait_set(self, sizes: tuple[int, int, int]) -> Any:
        if sizes != self._sizes:
            from rclpy.impl.implementation_singleton import rclpy_implementation as rclpy_c

            subscriptions, clients, services = sizes
            context = self.node.context.handle
            self._wait_set = rclpy_c.WaitSet(subscriptions, 0, 0, clients, services, 0, context)
            self._sizes = sizes
        self._wait_set.clear_entities()
        return self._wait_set

    def _serve(self, service: Any) -> int:
        request, header = service.handle.service_take_request(service.srv_type.Request)
        if header is None:
            return 0
        response = service.srv_type.Response()
        self._call(lambda: service.send_response(service.callback(request, response), header))
        return 1

    def _answer(self, client: Any) -> int:
        header, response = client.handle.take_response(client.srv_type.Response)
        if header is None:
            return 0
        try:
            future = client.get_pending_request(header.request_id.sequence_number)
        except KeyError:  # nobody waits for it any more
            return 1
        self._call(future.set_result, response)
        return 1

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:  # the handler decides; by default it raises
            self._on_error(error)


class ExecutorMailbox:
    """The same with public names of rclpy only; it needs more CPU time."""

    def __init__(self, node: Node, on_error: ErrorHandler | None = None) -> None:
        """Receive for a node; see `Mailbox`."""
        from rclpy.executors import SingleThreadedExecutor

        self.node = node
        self._on_error = on_error or _raise
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)

    def take(self, subscription: Any) -> int:
        """Run all pending callbacks; an executor cannot select one subscription."""
        return self.poll()

    def poll(self) -> int:
        """Run all pending callbacks without waiting; returns 0, since an executor does not count them."""
        for _ in range(MOST_AT_ONCE):
            before = time.monotonic()
            self._once(0.0)
            if time.monotonic() - before < 1e-4:
                break
        return 0

    def wait(self, seconds: float) -> bool:
        """Wait until something arrives or the time has passed, and run callbacks; whether it arrived."""
        deadline = time.monotonic() + seconds
        self._once(seconds)
        return time.monotonic() < deadline

    def _once(self, seconds: float) -> None:
        from rclpy.executors import ExternalShutdownException

        try:
            self._executor.spin_once(timeout_sec=seconds)
        except ExternalShutdownException:
            return
        except Exception as error:  # as in Mailbox
            self._on_error(error)


def make_mailbox(node: Node, on_error: ErrorHandler | None = None) -> Mailbox | ExecutorMailbox:
    """A mailbox that works with the version of rclpy that is installed."""
    from rclpy.impl.implementation_singleton import rclpy_implementation as rclpy_c

    wait_set = getattr(rclpy_c, 'WaitSet', None)
    needed = ('add_subscription', 'add_client', 'add_service', 'clear_entities', 'is_ready', 'wait')
    if wait_set is None or not all(hasattr(wait_set, name) for name in needed):
        return ExecutorMailbox(node, on_error)
    return Mailbox(node, on_error)


def _ready(wait_set: Any, kind: str, entities: list[Any], indices: Iterable[int]) -> list[Any]:
    return [entity for entity, index in zip(entities, indices, strict=True) if wait_set.is_ready(kind, index)]
