"""The gradient of an update, its batches side by side in several processes.

Threads inside an operation help little where operations are short, and Python's threads wait for one another; so each
further core gets a process of its own. Batches are split where there are fewer of them than cores, or where they are
large for the model. All processes read the same weights, in shared memory. The first sends each of the others a piece
through a pipe, makes the gradient of one itself, and adds to it what the others made in shared memory. A process that
finds its pipe closed ends: none outlives the first, however that one ended.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import IO

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.batches.batch import Batch
from dragoman.errors import TrainingError
from dragoman.memory import environment_for_training, keep_freed_memory
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.train.config import TrainConfig
from dragoman.train.gradient import add_gradient

_HEADER = struct.Struct("<6q")  # target tokens of the update, step, number of the piece; B, S, T
_LOSS = struct.Struct("<d")
_MOST_PROCESSES = 8  # more would add up gradients for longer than they make them
_FEWEST_TOKENS = 256  # of a piece of a batch: less is not worth sending
# What the layers of a piece put down for the way back, in positions x width x layers, on a processor: smaller pieces
# pass through its caches just as well, with less padding, and memory does not grow with the batch.
_MOST_VALUES = 8_000_000
_ALIGNMENT = 64  # bytes; the last bit of a product can depend on where a matrix begins: all begin as PyTorch's own do
# Signals that a terminal or a service sends to every process are for the first, which ends the others when it is done.
# Modules are looked for where the first finds them, which is not the working directory.
_START = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.path[:] = {path!r}
from {module} import work
work()
"""


class Workers:
    """This process and as many others as can share an update; they start when there is something to share.

    What comes out does not depend on their number: gradients are added up in the order of the pieces, as one process
    would that made them one after the other. The pieces are the batches, unless these are too few or too large.
    """

    def __init__(self, model: Transformer, config: TrainConfig, pad_id: int) -> None:
        self._model, self._config, self._pad_id = model, config, pad_id
        self._device = next(model.parameters()).device
        self._n_threads = torch.get_num_threads()
        is_possible = self._device.type == "cpu" and os.name == "posix"
        n_processes = min(self._n_threads, _MOST_PROCESSES) if is_possible else 1
        self._n_pieces = max(1, n_processes // config.accumulate)  # of each batch
        self._n_others = min(n_processes, self._n_pieces * config.accumulate) - 1
        self._threads_each = self._n_threads // (self._n_others + 1)
        self._others: list[_Other] = []

    def close(self) -> None:
        """Ends the other processes."""
        for other in self._others:
            other.close()

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """While the others work, this process has no more threads than each of them; when they rest, it has all."""
        torch.set_num_threads(self._threads_each)
        try:
            yield
        finally:
            torch.set_num_threads(self._n_threads)

    def gradient(self, group: Sequence[Batch], step: int) -> tuple[float, int]:
        """Loss per target token over all the batches of the update, whose gradient is left in the model."""
        n_tokens = sum(batch.n_tgt_tokens for batch in group)
        pieces = [piece for batch in group for piece in self._split(batch)]
        if len(pieces) > 1 and self._n_others and not self._others:
            self._start()
        loss = 0.0
        for first in range(0, len(pieces), 1 + len(self._others)):
            helped = list(zip(self._others, pieces[first + 1 :], strict=False))
            for number, (other, piece) in enumerate(helped, first + 1):
                other.send(piece, n_tokens, step, number)
            loss += add_gradient(
                self._model, pieces[first].to(self._device), self._config,
                pad_id=self._pad_id, n_tokens=n_tokens, step=step, number=first,
            )  # fmt: skip
            for other, _ in helped:
                loss += other.receive()
                pairs = [
                    (p.grad, gradient) for p, gradient in zip(self._model.parameters(), other.gradient, strict=True)
                ]
                torch._foreach_add_(*map(list, zip(*(pair for pair in pairs if pair[0] is not None), strict=True)))
        return loss / n_tokens, n_tokens

    def _split(self, batch: Batch) -> Sequence[Batch]:
        n_sharing = max(1, min(self._n_pieces, batch.n_tgt_tokens // _FEWEST_TOKENS))
        n_pieces = min(-(-self._n_values(batch) // (n_sharing * _MOST_VALUES)) * n_sharing, len(batch.src_BS))
        return list(batch.parts(n_pieces, pad_id=self._pad_id)) if n_pieces > 1 else [batch]

    def _n_values(self, batch: Batch) -> int:
        if self._device.type != "cpu":  # a GPU is quickest with all of a batch at once
            return 1
        shape, n_times = self._model.config, 2 if self._config.r_drop else 1
        return n_times * batch.tgt_out_BT.numel() * shape.d_model * (shape.n_encoder_layers + shape.n_decoder_layers)

    def _start(self) -> None:
        model, n = self._model, self._n_others
        with ExitStack() as stack:  # of files: mapped memory stays when they are closed
            weights, *gradients = [stack.enter_context(_memory_file()) for _ in range(n + 1)]
            _move_weights(model, _mapped(weights.fileno(), model))
            self._others = [
                _Other(model, self._config, self._pad_id, self._threads_each, weights, file) for file in gradients
            ]


class _Other:
    """Another process, seen from the first."""

    def __init__(
        self, model: Transformer, config: TrainConfig, pad_id: int, threads: int, weights: IO[bytes], file: IO[bytes]
    ) -> None:
        self.gradient = _views(model, _mapped(file.fileno(), model))
        files = (weights.fileno(), file.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path, module=__name__)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=files, env=environment_for_training(),
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        settings = {
            "model": asdict(model.config), "train": asdict(config), "pad_id": pad_id, "threads": threads,
            "files": files, "dtype": str(self.gradient[0].dtype).removeprefix("torch."),
        }  # fmt: skip
        self._write(json.dumps(settings).encode() + b"\n")

    def send(self, batch: Batch, n_tokens: int, step: int, number: int) -> None:
        """Gives it a piece to work on."""
        header = _HEADER.pack(n_tokens, step, number, *batch.src_BS.shape, batch.tgt_in_BT.shape[1])
        ids = torch.cat([batch.src_BS.flatten(), batch.tgt_in_BT.flatten(), batch.tgt_out_BT.flatten()])
        self._write(header + ids.numpy().tobytes())

    def receive(self) -> float:
        """Waits for the piece's loss; its gradient is then in shared memory."""
        answer = self._from.read(_LOSS.size)
        if len(answer) < _LOSS.size:
            raise self._ended()
        loss: float = _LOSS.unpack(answer)[0]
        return loss

    def close(self) -> None:
        """Ends it at once: whatever it works on, nobody waits for it any more."""
        self._process.kill()
        self._process.wait()
        self._from.close()
        with suppress(BrokenPipeError):  # there may be something left that it did not read
            self._to.close()

    def _write(self, message: bytes) -> None:
        try:
            self._to.write(message)
            self._to.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _ended(self) -> TrainingError:
        return TrainingError(
            f"a training process ended by itself, with code {self._process.wait()}",
            hint="is the memory exhausted? --threads 1 trains in one process; --resume goes on from the last "
            "checkpoint, if there is one",
        )


def work() -> None:
    """What each other process does: the gradient of every piece it is sent, until its pipe is closed."""
    keep_freed_memory()
    with suppress(EOFError, BrokenPipeError):  # the first process has ended
        _work(sys.stdin.buffer, sys.stdout.fileno())


def _work(source: IO[bytes], sink: int) -> None:
    line = source.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    settings = json.loads(line)
    config = TrainConfig(**settings["train"])
    torch.set_num_threads(settings["threads"])
    model = Transformer(ModelConfig(**settings["model"])).to(getattr(torch, settings["dtype"]))
    weights, gradient = (_mapped(file, model) for file in settings["files"])
    _read_weights(model, weights)
    for parameter, place in zip(model.parameters(), _views(model, gradient), strict=True):
        parameter.grad = place
    while True:
        n_tokens, step, number, n_rows, src_len, tgt_len = _HEADER.unpack(_read(source, _HEADER.size))
        sizes = [n_rows * src_len, n_rows * tgt_len, n_rows * tgt_len]
        ids = torch.from_numpy(np.frombuffer(_read(source, 8 * sum(sizes)), dtype=np.int64).copy())
        src, tgt_in, tgt_out = (part.view(n_rows, -1) for part in torch.split(ids, sizes))
        batch = Batch(src, tgt_in, tgt_out, n_tgt_tokens=0, indices=np.empty(0, dtype=np.int64))
        gradient.zero_()
        loss = add_gradient(
            model, batch, config, pad_id=settings["pad_id"], n_tokens=n_tokens, step=step, number=number
        )
        os.write(sink, _LOSS.pack(loss))


def _read(source: IO[bytes], n_bytes: int) -> bytes:
    message = source.read(n_bytes)
    if len(message) < n_bytes:
        raise EOFError
    return message


def _memory_file() -> IO[bytes]:
    """A nameless file in memory; where the system has none, on disk.

    Not one in /dev/shm: containers often have 64 MB there, and a process that writes more dies without a word.
    """
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("dragoman"), "w+b")
    return tempfile.TemporaryFile()


def _mapped(file: int, model: nn.Module) -> Tensor:
    """The file as a vector with a place for every value of the model's parameters."""
    dtype = next(model.parameters()).dtype
    n_values = sum(_sizes(model))
    return torch.from_file(f"/dev/fd/{file}", shared=True, size=n_values, dtype=dtype)


def _views(model: nn.Module, values: Tensor) -> list[Tensor]:
    """The vector in pieces, each of the shape of a parameter."""
    parts = zip(torch.split(values, _sizes(model)), model.parameters(), strict=True)
    return [part[: parameter.numel()].view(parameter.shape) for part, parameter in parts]


def _sizes(model: nn.Module) -> list[int]:
    """How much of the vector each parameter takes, so that the next one is aligned."""
    return [-(-p.numel() * p.element_size() // _ALIGNMENT) * _ALIGNMENT // p.element_size() for p in model.parameters()]


def _read_weights(model: nn.Module, values: Tensor) -> None:
    """Lets the model use the weights that are in the vector."""
    for parameter, view in zip(model.parameters(), _views(model, values), strict=True):
        parameter.data = view


def _move_weights(model: nn.Module, values: Tensor) -> None:
    """Moves the model's weights into the vector, where others can read them."""
    torch._foreach_copy_(_views(model, values), [parameter.data for parameter in model.parameters()])
    _read_weights(model, values)
