"""Clients that mean harm, or do it without meaning to: the server goes on answering the others."""

from __future__ import annotations

import socket
from pathlib import Path

from tame_server import received, tame_server, wait_until


def test_a_head_that_never_ends_is_given_up(tmp_path: Path) -> None:
    with tame_server(tmp_path, header_timeout_s=0.3) as server:
        slow, silent = server.connect(), server.connect()
        slow.sendall(b"POST /translate HTT")
        assert b"GUTEN TAG" in server.answer("guten Tag")
        assert (slow.recv(1), silent.recv(1)) == (b"", b"")


def test_a_second_request_may_not_take_longer_than_a_first(tmp_path: Path) -> None:
    with tame_server(tmp_path, header_timeout_s=0.3) as server:
        connection = server.connect()
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1000)
        connection.sendall(b"GET /hea")
        assert connection.recv(1) == b""


def test_a_head_of_any_size_is_not_kept(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        connection = server.connect()
        try:
            for _ in range(100):
                connection.sendall(b"GET /health HTTP/1.1\r\nX: " + b"x" * 10_000)
            assert connection.recv(1) == b""
        except ConnectionError:
            pass
        assert b"GUTEN TAG" in server.answer("guten Tag")


def test_a_body_that_never_ends_is_given_up(tmp_path: Path) -> None:
    with tame_server(tmp_path, body_timeout_s=0.3) as server:
        connection = server.connect()
        connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        answer = received(connection)
        assert b" 408 " in answer
        assert b"took longer than 0.3 s to arrive" in answer


def test_a_body_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """By what it says of itself, before any of it has come; or, if it says nothing, when it has become too large."""
    with tame_server(tmp_path, max_body_bytes=100_000) as server:
        said = server.connect()
        said.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000000\r\n\r\n{")
        answer = b""
        while not answer.endswith(b"}"):
            answer += said.recv(1000)
        assert b" 413 " in answer
        wait_until(lambda: _is_cut_off(said))  # it goes on all the same
        chunked = server.connect()
        chunked.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            chunked.sendall(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
        assert b" 413 " in received(chunked)


def _is_cut_off(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x" * 100_000)
    except OSError:
        return True
    return False


def test_all_bodies_together_have_a_limit(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_body_bytes=1000, max_held_bytes=1500) as server:
        first = server.connect()
        first.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 999)
        wait_until(lambda: b" 503 " in received(server.send(b"x" * 900)))
        first.sendall(b"x")
        assert b" 400 " in received(first)
        assert b" 400 " in received(server.send(b"x" * 900))  # there is room again


def test_json_of_any_depth_is_refused(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        for body in (b"[" * 500_000, b'{"q":' * 150_000, b'{"q":' + b"[" * 300_000 + b"]" * 300_000 + b"}"):
            assert b" 400 " in received(server.send(body))
        assert b"GUTEN TAG" in server.answer("guten Tag")


def test_connections_that_are_opened_and_left_make_room(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_connections=10) as server:
        for _ in range(50):
            server.connect()
        for _ in range(3):
            assert b"GUTEN TAG" in server.answer("guten Tag")
        wait_until(lambda: server.n_connections <= 10)


def test_a_request_under_way_is_not_closed_to_make_room(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_connections=10) as server:
        server.translator.may_go_on.clear()
        asked = server.ask("langsam")
        wait_until(lambda: server.translator.calls)
        for _ in range(50):
            server.connect()
        server.translator.may_go_on.set()
        assert b"LANGSAM" in received(asked)


def test_a_full_queue_refuses_at_once_and_keeps_what_it_took(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_queue=3, max_batch=1) as server:
        server.translator.may_go_on.clear()
        first = server.ask("null")
        wait_until(lambda: server.translator.calls)
        taken = []
        for n, word in enumerate(("eins", "zwei", "drei"), 1):
            taken.append(server.ask(word))
            wait_until(lambda n=n: server.service.n_waiting == n)
        refused = server.answer("vier")  # answered while the model does nothing
        assert b" 503 " in refused
        assert b"retry-after: 1\r\n" in refused.lower()
        server.translator.may_go_on.set()
        for connection, word in zip([first, *taken], (b"NULL", b"EINS", b"ZWEI", b"DREI"), strict=True):
            assert word in received(connection)


def test_a_client_that_goes_away_frees_its_place(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_batch=1) as server:
        server.translator.may_go_on.clear()
        first = server.ask("null")
        wait_until(lambda: server.translator.calls)
        gone = server.ask("weg")
        wait_until(lambda: server.service.n_waiting == 1)
        gone.close()
        wait_until(lambda: server.service.n_waiting == 0)
        server.translator.may_go_on.set()
        assert b"NULL" in received(first)
        assert b"GUTEN TAG" in server.answer("guten Tag")
        assert ["weg"] not in server.translator.calls


def test_a_translation_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with tame_server(tmp_path, timeout_s=0.2, max_batch=1) as server:
        server.translator.may_go_on.clear()
        answers = [received(connection) for connection in [server.ask("eins"), server.ask("zwei")]]
        assert all(b" 504 " in answer for answer in answers)
        assert server.service.n_waiting == 0
        server.translator.may_go_on.set()
        assert b"GUTEN TAG" in server.answer("guten Tag")


def test_a_failure_is_one_request_s_own(tmp_path: Path) -> None:
    with tame_server(tmp_path) as server:
        answer = server.answer("fail")
        assert b" 500 " in answer
        assert b"told to fail" not in answer
        assert b"GUTEN TAG" in server.answer("guten Tag")


def test_a_long_request_does_not_hold_up_a_short_one(tmp_path: Path) -> None:
    with tame_server(tmp_path, max_batch=16) as server:
        server.translator.may_go_on.clear()
        first = server.ask("null")
        wait_until(lambda: server.translator.calls)
        long = server.ask("a\\n" * 200)
        wait_until(lambda: server.service.n_waiting == 200)
        short = server.ask("kurz")
        wait_until(lambda: server.service.n_waiting == 201)
        server.translator.may_go_on.set()
        for connection in (first, short, long):
            assert b" 200 " in received(connection)
        assert "kurz" in server.translator.calls[1]  # in the batch after the one that was under way


def test_a_client_that_fetches_a_file_and_does_not_read_is_given_up(tmp_path: Path) -> None:
    with tame_server(tmp_path, body_timeout_s=0.3) as server:
        name = "0" * 32 + ".large.txt"
        (tmp_path / "files" / name).write_bytes(b"x" * 20_000_000)
        connection = server.connect()
        connection.sendall(f"GET /download_file/{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until(lambda: server.n_connections == 1)
        wait_until(lambda: server.n_connections == 0)
        assert b"GUTEN TAG" in server.answer("guten Tag")
