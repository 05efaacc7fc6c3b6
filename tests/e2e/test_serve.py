"""The server as its users meet it: a process on a port, and clients that were written for LibreTranslate."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served import Server, served
from small_run import Corpus

import dragoman
from dragoman.cli.main import run as cli


@pytest.fixture(scope="module")
def server(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(run, tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture(scope="module")
def sentences(corpus: Corpus) -> list[str]:
    return corpus.valid_src.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def expected(run: Path, sentences: list[str]) -> list[str]:
    """What Python gives."""
    return [one.text for one in dragoman.load(run).translate(sentences)]


def test_libretranslatepy_translates(server: Server, sentences: list[str], expected: list[str]) -> None:
    from libretranslatepy import LibreTranslateAPI

    client = LibreTranslateAPI(server.url)
    assert client.translate(sentences[0], "en", "de") == expected[0]
    assert client.translate("\n\n".join(sentences), "en", "de") == "\n\n".join(expected)
    assert [language["code"] for language in client.languages()] == ["en", "de"]
    assert client.detect("Where is the nearest station, please?")[0]["language"] == "en"
    with pytest.raises(urllib.error.HTTPError, match="400"):
        client.translate(sentences[0], "en", "fr")


def test_deep_translator_translates(server: Server, sentences: list[str], expected: list[str]) -> None:
    """It sends everything in the address, with a key that a server without keys does not look at."""
    from deep_translator import LibreTranslator

    client = LibreTranslator(source="en", target="de", api_key="any", custom_url=server.url + "/")
    assert client.translate(sentences[0]) == expected[0]
    assert client.translate_batch(sentences) == expected


def test_a_text_comes_as_json_as_a_form_or_in_parts(server: Server, sentences: list[str], expected: list[str]) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answers = [
        server.post("/translate", q=sentences[0], source="en", target="de"),
        server.ask("POST", "/translate", f"q={sentences[0].replace(' ', '+')}&source=en&target=de", form),
        server.ask(
            "POST", "/translate",
            "".join(
                f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                for name, value in (("q", sentences[0]), ("source", "en"), ("target", "de"))
            ) + "--x--\r\n",
            {"Content-Type": "multipart/form-data; boundary=x"},
        ),
    ]  # fmt: skip
    assert [answer.json() for answer in answers] == [{"translatedText": expected[0]}] * 3


def test_a_list_gives_lists(server: Server, sentences: list[str], expected: list[str]) -> None:
    answer = server.post("/translate", q=sentences, source="en", target="de", alternatives=2).json()
    assert answer["translatedText"] == expected
    assert len(answer["alternatives"]) == len(sentences)
    assert all(1 <= len(others) <= 2 for others in answer["alternatives"])
    single = server.post("/translate", q=sentences[0], source="en", target="de", alternatives=2).json()
    assert single == {"translatedText": expected[0], "alternatives": answer["alternatives"][0]}


def test_the_source_can_be_found_out(server: Server) -> None:
    q = ["Where is the nearest station, please?", "Wo ist bitte der nächste Bahnhof?"]
    answer = server.post("/translate", q=q, source="auto", target="de").json()
    assert [found["language"] for found in answer["detectedLanguage"]] == ["en", "de"]
    assert all(50 < found["confidence"] <= 100 for found in answer["detectedLanguage"])
    assert answer["translatedText"][1] == q[1]  # it is in the target language already
    single = server.post("/translate", q=q[0], source="auto", target="de").json()
    assert single["detectedLanguage"]["language"] == "en"


def test_html_keeps_its_tags(server: Server, sentences: list[str], expected: list[str]) -> None:
    q = f'<p class="a&amp;b">{sentences[0]}</p>\n<!-- {sentences[0]} --><pre>{sentences[0]}</pre>'
    answer = server.post("/translate", q=q, source="en", target="de", format="html").json()
    assert answer["translatedText"] == q.replace(f"{sentences[0]}</p>", f"{expected[0]}</p>")


def test_mistakes_are_told_as_libretranslate_does(server: Server) -> None:
    for fields, message in (
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "", "source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en", "target": "xx"}, "xx is not supported"),
        ({"q": "a", "source": "de", "target": "en"}, "en is not available as a target language from de"),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "format: Input should be 'text' or 'html'"),
        ({"q": "a" * 60_000, "source": "en", "target": "de"}, "exceeds text limit (50000)"),
        ({"q": ["a"] * 1001, "source": "en", "target": "de"}, "exceeds text limit (1000)"),
    ):
        answer = server.post("/translate", **fields)
        assert answer.status == 400
        assert message in answer.json()["error"]
    assert server.ask("POST", "/translate", "{", {"Content-Type": "application/json"}).json() == {
        "error": "Invalid request: the body is not JSON"
    }
    for method, path, status in (("GET", "/nothing", 404), ("GET", "/translate", 405), ("DELETE", "/detect", 405)):
        answer = server.ask(method, path)
        assert answer.status == status
        assert set(answer.json()) == {"error"}


def test_what_a_page_asks_for(server: Server) -> None:
    assert server.get("/health").json() == {"status": "ok"}
    settings = server.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert settings["keyRequired"] is False
    assert settings["supportedFilesFormat"] == [".txt", ".html", ".htm"]
    assert server.get("/languages").json()[0] == {"code": "en", "name": "English", "targets": ["de", "en"]}


def test_our_own_interface_tells_all(server: Server, run: Path, sentences: list[str]) -> None:
    translator = dragoman.load(run)
    (found,) = translator.translate(sentences[:1], nbest=3, token_log_probs=True, alignments=True)
    asked = {"q": sentences[0], "source": "en", "target": "de", "nbest": 3, "token_scores": True, "alignments": True}
    answer = server.post("/v1/translate", **asked).json()
    assert answer["model"] == "en-de"
    (told,) = answer["translations"]
    assert told["text"] == found.text
    assert told["score"] == pytest.approx(found.score, abs=1e-5)
    assert told["token_log_probs"] == pytest.approx(found.token_log_probs, abs=1e-5)
    assert [tuple(pair) for pair in told["alignment"]] == list(found.alignment or ())
    assert [other["text"] for other in told["alternatives"]] == [other.text for other in found.alternatives]
    (model,) = server.get("/v1/models").json()["models"]
    assert (model["source"], model["target"], model["beam"]) == ("en", "de", 4)


def test_our_own_interface_draws_and_insists(server: Server, sentences: list[str]) -> None:
    asked = {"q": sentences[:3], "source": "en", "target": "de", "sampling": {"temperature": 1.5, "seed": 3}}
    first, second = (server.post("/v1/translate", **asked).json()["translations"] for _ in range(2))
    assert [one["text"] for one in first] == [one["text"] for one in second]
    # The second sentence draws as it would without the first.
    word = sentences[0].split()[0]
    answer = server.post("/v1/translate", q=sentences[0], source="en", target="de", glossary={word: ["Wort"]}).json()
    (told,) = answer["translations"]
    assert told["terms"] == [[word, "Wort", False]]
    assert "Wort" in told["text"]
    refused = server.post("/v1/translate", q="a", source="en", target="de", nbest=9)
    assert (refused.status, refused.json()["error"].startswith("nbest=9 does not fit a beam of 4")) == (400, True)


def test_many_at_once_get_what_each_would_get_alone(server: Server, sentences: list[str], expected: list[str]) -> None:
    n = 120
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        asked = [pool.submit(server.post, "/translate", q=sentences[i % 8], source="en", target="de") for i in range(n)]
        answers = [one.result().json()["translatedText"] for one in asked]
    assert answers == [expected[i % 8] for i in range(n)]
    lines = server.get("/metrics").body.decode().splitlines()
    totals = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    n_batches = totals['dragoman_batch_sentences_count{pair="en-de"}']
    assert n_batches < totals['dragoman_batch_sentences_sum{pair="en-de"}']  # some were translated together
    assert totals['dragoman_requests_total{path="/translate",status="200"}'] >= n


def test_the_reference_needs_nothing_from_elsewhere(server: Server) -> None:
    page = server.get("/docs").body.decode()
    assert "/v1/translate" in page
    assert "http" not in page.replace("http.", "")
    assert "<script" not in page
    document = server.get("/openapi.json").json()
    assert {"/translate", "/languages", "/detect", "/translate_file", "/v1/translate", "/health"} <= set(
        document["paths"]
    )


def test_a_file_is_translated_and_fetched(server: Server, sentences: list[str], expected: list[str]) -> None:
    content = "\n".join(["", *sentences * 20, ""]).encode()
    answer = server.send_file("../no/tes.txt", content, source="en", target="de")
    assert answer.status == 200, answer.body
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(server.url + "/download_file/")
    fetched = server.get(url.removeprefix(server.url))
    assert fetched.body.decode() == "\n".join(["", *expected * 20, ""])
    assert "tes_de.txt" in fetched.headers["content-disposition"]
    for name, content, status in (("a.pdf", b"x", 400), ("a.txt", b"\xff\xfe\xff", 400)):
        assert server.send_file(name, content, source="en", target="de").status == status
    for path in ("/download_file/../serve.log", "/download_file/%2e%2e%2fserve.log", "/download_file/nothing"):
        assert server.get(path).status == 404


def test_the_log_has_no_word_of_what_was_asked(server: Server, sentences: list[str]) -> None:
    from urllib.parse import quote

    secret = "Geheimnis"
    server.ask("POST", f"/translate?q={quote(secret)}&source=en&target=de")
    server.post("/translate", q=secret, source="en", target=secret)
    server.get(f"/{secret}")
    deadline = time.monotonic() + 30
    while '"other"' not in (log := server.log()).splitlines()[-1] and time.monotonic() < deadline:
        time.sleep(0.05)  # a line is written after its answer
    assert secret not in log
    assert sentences[0] not in log
    records = [json.loads(line) for line in log.splitlines()[1:]]
    assert {"time", "method", "path", "status", "ms"} <= set(records[-1])
    assert records[-1]["path"] == "other"


def test_pages_of_others_may_not_ask(server: Server) -> None:
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    answer = server.ask("OPTIONS", "/translate", headers=headers)
    assert "access-control-allow-origin" not in answer.headers
    assert "access-control-allow-origin" not in server.ask("GET", "/languages", headers=headers).headers


def test_keys_rates_origins_and_a_good_end(run: Path, tmp_path: Path, sentences: list[str]) -> None:
    (tmp_path / "keys").write_text("# ours\nkey-one the first\nkey-two\n", encoding="utf-8")
    flags = ["--api-key-file", str(tmp_path / "keys"), "--requests-per-minute", "3", "--cors", "https://example.org"]
    with served(run, tmp_path, *flags) as server:
        fields = {"q": sentences[0], "source": "en", "target": "de"}
        assert server.post("/translate", **fields).status == 403
        assert server.post("/translate", **fields, api_key="key-three").json() == {"error": "Invalid API key"}
        assert [server.post("/translate", **fields, api_key="key-one").status for _ in range(3)] == [200] * 3
        late = server.post("/translate", **fields, api_key="key-one")
        assert (late.status, late.headers["retry-after"]) == (429, "20")
        assert server.post("/translate", **fields, api_key="key-two").status == 200  # has a rate of its own
        assert server.get("/frontend/settings").json()["keyRequired"] is True
        origin = {"Origin": "https://example.org"}
        assert (
            server.ask("GET", "/languages", headers=origin).headers["access-control-allow-origin"] == origin["Origin"]
        )
        assert server.stop() == 0
        assert "key-one" not in server.log()
        assert '"key": "the first"' in server.log()


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="schemathesis needs Python 3.11")
def test_no_request_gets_an_undeclared_answer(run: Path, tmp_path: Path) -> None:
    """schemathesis makes up requests, valid and not, from the OpenAPI document."""
    checks = (
        "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
        "response_schema_conformance,unsupported_method"
    )
    with served(run, tmp_path) as server:
        ended = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")), "run", server.url + "/openapi.json",
                "--checks", checks, "--max-examples", "10", "--seed", "1", "--phases", "examples,coverage,fuzzing",
                "--no-color", "--continue-on-failure", "--generation-database", "none",
            ],
            cwd=tmp_path, env={**os.environ}, capture_output=True, text=True,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout[-20_000:]
        n = sum(len(methods) for methods in server.get("/openapi.json").json()["paths"].values())
        assert f"{n} selected / {n} total" in ended.stdout
        assert '"status": 500' not in server.log()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "{run}"], "the languages of {run} are not known"),
        (["--model", "en-de={run}", "--model", "en-de={run}"], "two models translate from en to de"),
        (["--model", "en-de=nowhere"], "nowhere is not a run folder"),
        (["--model", "en-de={run}", "--host", "192.0.2.1"], "the address 192.0.2.1, port 5000, cannot be used"),
        (["--model", "en-de={run}", "--api-key-file", "nowhere"], "the keys in nowhere cannot be read"),
        (["--model", "en-de={run}", "--max-queue", "0"], "max_queue=0 lets nothing in"),
    ],
)
def test_what_cannot_be_served_is_said(
    flags: list[str], message: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [flag.format(run=run) for flag in flags]
    assert cli(["serve", *args, "--files", str(tmp_path / "files")]) in (1, 2)
    assert message.format(run=run) in capsys.readouterr().err


def test_a_kill_under_load_loses_no_file_without_the_client_seeing_it(
    run: Path, tmp_path: Path, sentences: list[str], expected: list[str]
) -> None:
    """Killed with files done and files under way: what was answered can still be fetched, the rest got no answer."""
    small, large = "\n".join(sentences).encode(), "\n".join(sentences * 5000).encode()
    promised, unexpected = list[str](), list[object]()

    def until_the_end(ask: Callable[[], None]) -> None:
        while True:
            try:
                ask()
            except (ConnectionError, http.client.HTTPException):
                return

    with served(run, tmp_path) as server, concurrent.futures.ThreadPoolExecutor(64 + 3 + 3) as pool:

        def translate() -> None:
            answer = server.post("/translate", q=sentences[0], source="en", target="de")
            if (answer.status, answer.json()) != (200, {"translatedText": expected[0]}):
                unexpected.append(answer)

        def send_file() -> None:
            answer = server.send_file("a.txt", small, source="en", target="de")
            if answer.status == 200:
                promised.append(answer.json()["translatedFileUrl"])
            elif answer.status != 503:  # too many files at once
                unexpected.append(answer)

        under_way = [pool.submit(server.send_file, "b.txt", large, source="en", target="de") for _ in range(3)]
        try:
            while server.get("/metrics").body.count(b"dragoman_requests_under_way 4.0") == 0:  # and this question
                assert not any(one.done() for one in under_way)
            clients = [pool.submit(until_the_end, ask) for ask in [translate] * 64 + [send_file] * 3]
            while len(promised) < 10:
                assert not any(one.done() for one in [*clients, *under_way])
                time.sleep(0.01)
        finally:
            server.process.kill()
        errors = [one.exception(timeout=60) for one in under_way]
        assert all(isinstance(error, ConnectionError | http.client.HTTPException) for error in errors)
        for client in clients:
            client.result(timeout=60)
        (tmp_path / "files" / ".half.txt.part").write_bytes(b"half")
    assert not unexpected
    with served(run, tmp_path) as again:
        for url in promised:
            assert again.get("/" + url.split("/", 3)[3]).body.decode() == "\n".join(expected)
        # Beside these there may be files whose answer was on its way when the kill came; there is nothing half-written.
        for file in (tmp_path / "files").iterdir():
            assert file.read_text(encoding="utf-8") == "\n".join(expected)


def test_an_order_to_end_lets_what_is_under_way_be_finished(
    run: Path, tmp_path: Path, sentences: list[str], expected: list[str]
) -> None:
    large = "\n".join(sentences * 300)
    with served(run, tmp_path) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(server.send_file, "b.txt", large.encode(), source="en", target="de")
        while server.get("/metrics").body.count(b"dragoman_requests_under_way 2.0") == 0:
            assert not under_way.done()
        assert server.stop() == 0
        name = under_way.result().json()["translatedFileUrl"].rpartition("/")[2]
        assert (tmp_path / "files" / name).read_text(encoding="utf-8") == "\n".join(expected * 300)
        with pytest.raises(ConnectionError):
            server.get("/health")


def _models_of(server: Server) -> list[int]:
    """The processes of a server's models."""
    pid = server.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="processes are looked up in Linux' /proc")
def test_no_process_of_a_model_outlives_a_server_that_was_killed(run: Path, tmp_path: Path) -> None:
    with served(run, tmp_path) as server:
        (child,) = _models_of(server)
        server.process.kill()
        server.process.wait()
        deadline = time.monotonic() + 60
        while Path(f"/proc/{child}").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="processes are looked up in Linux' /proc")
def test_a_server_whose_model_died_says_so_and_ends(run: Path, tmp_path: Path) -> None:
    with served(run, tmp_path) as server:
        os.kill(_models_of(server)[0], signal.SIGKILL)
        assert server.process.wait(timeout=60) == 1
        assert re.search(r"error: the process of .* ended by itself, with code -9\nhint: ", server.log())
