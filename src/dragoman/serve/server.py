"""The application in a process: sockets, signals, logs."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

from dragoman.errors import ConfigError
from dragoman.memory import search_garbage_seldom
from dragoman.serve.connections import protocol
from dragoman.serve.limits import Limits

_BACKLOG = 2048  # connections that wait to be taken
_SPARE_FILES = 64  # that are open besides connections


def run_server(app: ASGIApp, *, host: str, port: int, limits: Limits, on_start: Callable[[str], None]) -> None:
    """Answers until SIGTERM or Ctrl-C, then finishes what is under way. `on_start` is told the address."""
    listener = listening(host, port)
    most = min(limits.max_connections, _most_files() - _SPARE_FILES)
    server = make_server(app, replace(limits, max_connections=most))

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    # uvicorn catches the signal, finishes, and raises it again: then it comes here, and the process ends well.
    signal.signal(signal.SIGTERM, stop)
    bound = listener.getsockname()
    on_start(f"http://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}")
    search_garbage_seldom()
    server.run(sockets=[listener])


def make_server(app: ASGIApp, limits: Limits) -> uvicorn.Server:
    """uvicorn, which answers for the application within the limits of connections."""
    connection = protocol(
        max_connections=limits.max_connections,
        header_timeout_s=limits.header_timeout_s,
        stall_timeout_s=limits.body_timeout_s,
    )
    config = uvicorn.Config(
        app, http=connection, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        backlog=_BACKLOG,
    )  # fmt: skip
    return uvicorn.Server(config)


def log_to_stderr() -> None:
    """One JSON object on each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("dragoman.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # nobody reads that in our lines
    # What uvicorn says of a request that is none ("Invalid HTTP request received.") is of no use to anyone.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def listening(host: str, port: int) -> socket.socket:
    """A socket that takes connections."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"the address {host}, port {port}, cannot be used ({error.strerror})", hint="give another --host or --port"
        ) from None
    # Connections inherit it. Otherwise the body of an answer waits 40 ms for the client to confirm its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _most_files() -> int:
    """As many as this process may have open, after it has asked for all it may ask for."""
    try:
        import resource
    except ImportError:  # not on Windows
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        try:
            wanted = 65536 if hard == resource.RLIM_INFINITY else hard
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        except (OSError, ValueError):
            pass
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
