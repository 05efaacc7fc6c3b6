"""Updates shared by several processes: the same to the last bit as by one, and nothing of them outlives the first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_tasks import PAD, batch_of, make_model, reversed_pairs

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.model.transformer import Transformer
from dragoman.train import workers
from dragoman.train.config import TrainConfig
from dragoman.train.loop import Update, updates
from dragoman.train.optim import make_optimizer

# Bounds a wait that would otherwise hang the whole suite; nothing here comes near it.
TIMEOUT_S = 120


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that the test started, which must all have ended with it."""
    processes: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def recorded(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(start(*args, **options))
        return processes[-1]

    monkeypatch.setattr(workers.subprocess, "Popen", recorded)
    yield processes
    assert [process for process in processes if process.returncode is None] == []


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
        assert torch.get_num_threads() == n, "what was changed meanwhile is put back"
    finally:
        torch.set_num_threads(before)


def batches(n: int) -> list[Batch]:
    return [batch_of(reversed_pairs(6 + 5 * (seed % 3), seed, longest=4 + 7 * (seed % 2))) for seed in range(n)]


def stream(model: Transformer, some: list[Batch], config: TrainConfig, done: int = 0) -> Generator[Update, None, None]:
    return updates(model, some, make_optimizer(model, config), lambda _: 0.01, config, pad_id=PAD, done=done)


def train(n_threads: int, n_batches: int, model: dict[str, Any], **settings: Any) -> tuple[list[Update], list[Any]]:
    """Every number of a short run, and every weight at its end."""
    trained = make_model(dropout=0.3, **model).to(settings.pop("dtype", torch.float32))
    with threads(n_threads):
        found = list(stream(trained, batches(n_batches), TrainConfig(seed=3, **settings)))
    return found, [parameter.tolist() for parameter in trained.parameters()]


@pytest.mark.parametrize(
    ("n_threads", "n_batches", "model", "settings"),
    [
        # Sizes that are no multiple of anything, so that parameters do not fall into place by themselves.
        (2, 8, {"d_ff": 33, "d_k": 5, "d_v": 3, "attention_bias": True}, {"accumulate": 2}),
        # Three batches are one for each process and one more; of the seven, the last group has but one.
        (2, 7, {"tie_embeddings": False, "norm": "pre", "positions": "learned"}, {"accumulate": 3, "clip_norm": 0.5}),
        (2, 5, {}, {"accumulate": 2, "precision": "bfloat16"}),  # the last group is half a group
        (2, 6, {}, {"accumulate": 2, "optimizer": "muon"}),
        (2, 6, {}, {"accumulate": 2, "r_drop": 5.0}),
        (2, 6, {"d_model": 160, "d_ff": 480}, {"accumulate": 2, "optimizer": "muon", "precision": "bfloat16"}),
        (3, 7, {"activation": "swiglu"}, {"accumulate": 4, "dtype": torch.float64}),
    ],
)
def test_several_processes_are_one_to_the_last_bit(
    started: list[subprocess.Popen[bytes]],
    n_threads: int,
    n_batches: int,
    model: dict[str, Any],
    settings: dict[str, Any],
) -> None:
    alone = train(1, n_batches, model, **settings)
    assert started == []
    together = train(n_threads, n_batches, model, **settings)
    assert len(started) == n_threads - 1
    assert len(alone[0]) == -(-n_batches // settings["accumulate"])
    assert together == alone  # losses, norms and weights; no tolerance


@pytest.mark.parametrize(("n_threads", "accumulate"), [(1, 2), (2, 1)])
def test_one_thread_or_one_small_batch_needs_no_other_process(
    started: list[subprocess.Popen[bytes]], n_threads: int, accumulate: int
) -> None:
    train(n_threads, 2, {}, accumulate=accumulate)
    assert started == []


@pytest.mark.parametrize(("n_threads", "accumulate", "n_others"), [(2, 1, 1), (3, 1, 2), (5, 2, 3)])
def test_a_batch_is_split_where_there_are_fewer_than_threads(
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
    n_threads: int,
    accumulate: int,
    n_others: int,
) -> None:
    """The same gradient, give or take the order in which it is added up."""
    monkeypatch.setattr(workers, "_FEWEST_TOKENS", 10)
    config, some = TrainConfig(accumulate=accumulate), batches(4 * accumulate)
    found = []
    for n in (1, n_threads):
        with threads(n):
            found.append(list(stream(make_model(), some, config)))
    assert len(started) == n_others
    for alone, together in zip(*found, strict=True):
        assert (together.step, together.n_tgt_tokens) == (alone.step, alone.n_tgt_tokens)
        assert together.loss == pytest.approx(alone.loss, rel=1e-5)
        assert together.grad_norm == pytest.approx(alone.grad_norm, rel=1e-4)


def test_large_batches_are_the_same_to_the_last_bit(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is worked through in pieces, which are added up one by one wherever they were made."""
    monkeypatch.setattr(workers, "_MOST_VALUES", 2000)
    alone = train(1, 4, {}, accumulate=2)
    assert train(2, 4, {}, accumulate=2) == alone
    assert len(started) == 1
    monkeypatch.setattr(workers, "_MOST_VALUES", 10**9)
    assert train(1, 4, {}, accumulate=2) != alone


def test_pieces_are_not_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    (batch,) = batches(1)
    with threads(6):
        shared = workers.Workers(make_model(), TrainConfig(), PAD)
    for fewest, n_pieces in (
        (batch.n_tgt_tokens, 1),
        (batch.n_tgt_tokens // 2, 2),
        (1, 6),
        (batch.n_tgt_tokens + 1, 1),
    ):
        monkeypatch.setattr(workers, "_FEWEST_TOKENS", fewest)
        pieces = shared._split(batch)
        assert len(pieces) == n_pieces
        assert sum(piece.n_tgt_tokens for piece in pieces) == batch.n_tgt_tokens
        assert [i for piece in pieces for i in piece.indices] == list(batch.indices)


# As the sampler hands them over: by length.
SORTED = batch_of(sorted(reversed_pairs(12, seed=1, longest=9), key=lambda pair: len(pair[1])))
N_VALUES = SORTED.tgt_out_BT.numel() * 16 * 2  # positions, width and layers of `make_model`


@pytest.mark.parametrize(
    ("n_threads", "most", "settings", "n_rows"),
    [
        (1, N_VALUES, {}, [12]),
        (1, N_VALUES // 3, {}, [4, 4, 4]),
        (1, N_VALUES, {"r_drop": 3.0}, [6, 6]),  # what is read twice is twice as much
        (1, 1, {}, [1] * 12),  # never less than a pair
        (2, N_VALUES // 3, {}, [3, 3, 3, 3]),  # as many for each process
        (3, N_VALUES // 2, {}, [4, 4, 4]),
    ],
)
def test_pieces_are_not_too_large(
    monkeypatch: pytest.MonkeyPatch, n_threads: int, most: int, settings: dict[str, Any], n_rows: list[int]
) -> None:
    monkeypatch.setattr(workers, "_FEWEST_TOKENS", 1)
    monkeypatch.setattr(workers, "_MOST_VALUES", most)
    with threads(n_threads):
        pieces = workers.Workers(make_model(), TrainConfig(**settings), PAD)._split(SORTED)
    assert [len(piece.src_BS) for piece in pieces] == n_rows
    if len(pieces) > 1:  # short sentences are not padded to the longest
        assert pieces[0].tgt_out_BT.shape[1] < pieces[-1].tgt_out_BT.shape[1] == SORTED.tgt_out_BT.shape[1]


def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (N_VALUES, N_VALUES // 5):
        monkeypatch.setattr(workers, "_MOST_VALUES", most)
        model = make_model().double()
        with threads(1):
            loss, _ = workers.Workers(model, TrainConfig(), PAD).gradient([SORTED], step=1)
        found.append([torch.tensor(loss), *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-12)


def test_what_is_dropped_depends_on_seed_step_and_number_alone() -> None:
    """Another update, another batch of it or another seed drops something else; asked again, the same."""
    batch = batches(1)[0]

    def loss(seed: int, step: int, number: int) -> float:
        torch.rand(3)  # PyTorch's own generator has no part in it
        return workers.add_gradient(
            make_model(dropout=0.3), batch, TrainConfig(seed=seed), pad_id=PAD, n_tokens=1, step=step, number=number
        )

    places = [(0, 1, 0), (0, 1, 1), (0, 2, 0), (0, 0, 1), (1, 1, 0), (2**63 - 1, 10**7, 0)]
    losses = [loss(*place) for place in places]
    assert len(set(losses)) == len(places)
    assert [loss(*place) for place in places] == losses


def test_a_run_in_parts_is_the_run_in_one() -> None:
    """Nothing but weights, moments and the step goes on from one part to the next."""
    config, some = TrainConfig(seed=3, accumulate=2), batches(8)
    whole, parted = make_model(dropout=0.3), make_model(dropout=0.3)
    expected = list(stream(whole, some, config))
    optimizer = make_optimizer(parted, TrainConfig())
    found = [
        update
        for done in (0, 2)
        for update in updates(
            parted, some[2 * done : 2 * done + 4], optimizer, lambda _: 0.01, config, pad_id=PAD, done=done
        )
    ]
    assert found == expected


def test_it_ends_when_the_updates_are_closed_or_dropped(started: list[subprocess.Popen[bytes]]) -> None:
    with threads(2):
        found = stream(make_model(), batches(4), TrainConfig(accumulate=2))
        next(found)
        assert started[0].poll() is None
        found.close()
        assert started[0].returncode is not None

        found = stream(make_model(), batches(4), TrainConfig(accumulate=2))
        next(found)
        del found
        assert started[1].returncode is not None


def test_it_ends_when_something_is_raised(started: list[subprocess.Popen[bytes]]) -> None:
    with threads(2):
        with pytest.raises(KeyboardInterrupt):
            stream_thrown_into(KeyboardInterrupt())
        assert started[0].returncode is not None

        model = make_model()
        with torch.no_grad():
            model.embedding.weight[5] = float("nan")
        with pytest.raises(TrainingError, match=r"the loss is nan at step 1, in the batch of the 17 pairs"):
            next(stream(model, batches(2), TrainConfig(accumulate=2)))
        assert started[1].returncode is not None


def stream_thrown_into(error: BaseException) -> None:
    found = stream(make_model(), batches(4), TrainConfig(accumulate=2))
    next(found)
    found.throw(error)


def check_says_that_it_ended(caught: pytest.ExceptionInfo[TrainingError]) -> None:
    assert str(caught.value) == f"a training process ended by itself, with code -{signal.SIGKILL.value}"
    assert "--threads 1" in (caught.value.hint or "")


def test_one_that_is_killed_is_reported(started: list[subprocess.Popen[bytes]]) -> None:
    """Before it is sent something. What it did not read must not come in the way of the report."""
    with threads(2):
        found = stream(make_model(), batches(6), TrainConfig(accumulate=2))
        next(found)
        started[0].kill()
        started[0].wait()
        with pytest.raises(TrainingError) as caught:
            next(found)
    check_says_that_it_ended(caught)


def test_one_that_is_killed_at_work_is_reported(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = workers.add_gradient

    def deadly(*args: Any, **options: Any) -> float:
        if options["step"] == 2:
            started[0].kill()
        return real(*args, **options)

    monkeypatch.setattr(workers, "add_gradient", deadly)
    big = batch_of(reversed_pairs(20_000, seed=1))  # work for longer than it takes to be killed
    with threads(2):
        found = stream(make_model(), [*batches(3), big], TrainConfig(accumulate=2))
        next(found)
        with pytest.raises(TrainingError) as caught:
            next(found)
    check_says_that_it_ended(caught)


def test_weights_stay_when_the_others_have_gone(started: list[subprocess.Popen[bytes]]) -> None:
    """They lie in memory that was shared; a second run on the same model shares them anew."""
    model, config = make_model(), TrainConfig(accumulate=2)
    with threads(2):
        list(stream(model, batches(2), config))
        before = [parameter.tolist() for parameter in model.parameters()]
        assert [parameter.tolist() for parameter in model.parameters()] == before
        again = list(stream(model, batches(2), config))
    assert len(started) == 2
    assert again[0].grad_norm != 0
    assert model.state_dict().keys() == make_model().state_dict().keys()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shared_weights_begin_where_pytorchs_own_would(dtype: torch.dtype) -> None:
    """A product's last bit can depend on where in memory its matrices begin: of 84 tried, 15 did."""
    model = make_model(d_ff=33, d_k=5, d_v=3, attention_bias=True).to(dtype)
    before = [parameter.tolist() for parameter in model.parameters()]
    with workers._memory_file() as file:
        workers._move_weights(model, workers._mapped(file.fileno(), model))
    assert all(parameter.data_ptr() % 64 == 0 for parameter in model.parameters())
    assert [parameter.tolist() for parameter in model.parameters()] == before


def test_a_frozen_weight_stays(started: list[subprocess.Popen[bytes]]) -> None:
    model = make_model()
    model.embedding.weight.requires_grad_(False)
    before = model.embedding.weight.clone()
    with threads(2):
        list(stream(model, batches(4), TrainConfig(accumulate=2)))
    assert torch.equal(model.embedding.weight, before)


SCRIPT = """
    import os, signal, sys
    sys.path[0] = {here!r}
    import torch
    from test_workers import *
    from dragoman.train.workers import Workers

    torch.set_num_threads(2)
    model, config = make_model(dropout=0.3), TrainConfig(accumulate=2)
"""


def script(text: str, **options: Any) -> subprocess.Popen[str]:
    """A Python program of its own, with what these tests are made of. Its stderr is that of the other process too."""
    program = textwrap.dedent(SCRIPT.format(here=str(Path(__file__).parent))) + textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    "until",
    [
        "workers._start()",  # it is still loading
        "workers.gradient(batches(2), 1)",  # it waits
        "workers._start(); workers._others[0].send(batch_of(reversed_pairs(20_000, seed=1)), 1, 1, 1)",  # it works
    ],
)
def test_it_does_not_outlive_a_first_process_that_is_killed(until: str) -> None:
    """As the power would: nobody is told. It goes quietly, and leaves nothing in memory."""
    files_before = shared_files()
    process = script(f"workers = Workers(model, config, PAD)\n{until}\nprint('now', flush=True)\ninput()")
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.kill()
    # Both hold stderr, so this ends when both have ended.
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    assert err == ""
    assert shared_files() <= files_before


def shared_files() -> set[str]:
    """Files of ours in the system's shared memory."""
    folder = Path("/dev/shm")
    files = folder.iterdir() if folder.is_dir() else []
    return {path.name for path in files if path.lstat().st_uid == os.getuid()}


def test_a_signal_to_all_processes_is_for_the_first(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches the whole group; so does a service that is stopped. The update is finished first.

    The working directory is not where modules are looked for either: the corpus may well lie beside a json.py.
    """
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    process = script(
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        found = stream(model, batches(6), config)
        print(next(found).step, flush=True)
        input()
        print(next(found).step)
        found.close()
        """,
        start_new_session=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first == "1\n", process.communicate(timeout=TIMEOUT_S)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.killpg(process.pid, number)
    out, err = process.communicate("\n", timeout=TIMEOUT_S)
    assert (out, err, process.returncode) == ("2\n", "", 0)
