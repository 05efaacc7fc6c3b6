"""OpenNMT-py's Transformer and loss. Its layers are pre-norm only."""

# ruff: noqa: E402 - what the peer needs to be imported at all comes before its import

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import torch

from benchmarks.old_packages import leave_out
from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size

leave_out("ahocorasick", "fasttext", "rapidfuzz", "sacrebleu", "spacy")
import onmt.opts
from onmt.constants import DefaultTokens
from onmt.inputters.inputter import dict_to_vocabs
from onmt.model_builder import build_model
from onmt.modules.position_ffn import PositionwiseFeedForward
from onmt.utils.loss import LossCompute
from onmt.utils.parse import ArgumentParser


def build(size: Size, vocab_size: int) -> Peer:
    specials = [DefaultTokens.PAD, DefaultTokens.UNK, DefaultTokens.BOS, DefaultTokens.EOS]
    words = specials + [f"word{i}" for i in range(vocab_size - len(specials))]
    vocabs = dict_to_vocabs({"src": words, "tgt": words, "data_task": "seq2seq"})
    options = _options(size)
    model = build_model(options, options, vocabs, None, -1)
    for module in model.modules():
        if isinstance(module, PositionwiseFeedForward):
            module.dropout_1.p = 0.0  # after the activation
    compute_loss = LossCompute.from_opts(options, model, vocabs["tgt"])
    optimizer = protocol.adam(model)

    def convert(batch: Batch) -> dict[str, Any]:
        tgt = torch.cat([batch.tgt_in_BT[:, :1], batch.tgt_out_BT], dim=1)  # bos to eos; the model shifts it
        return {
            "src": batch.src_BS[:, :, None],
            "srclen": (batch.src_BS != protocol.PAD_ID).sum(dim=1),
            "tgt": tgt[:, :, None],
            "n_tokens": batch.n_tgt_tokens,
        }

    def update(batch: dict[str, Any]) -> float:
        output, attention = model(batch["src"], batch["tgt"], batch["srclen"])
        loss, _ = compute_loss(batch, output, attention)
        loss = loss / batch["n_tokens"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Peer(version("OpenNMT-py"), model, convert, update)


def _options(size: Size) -> Any:
    parser = ArgumentParser()
    onmt.opts.train_opts(parser)
    settings = {
        "data": "{}",
        "src_vocab": "none",
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "hidden_size": size.d_model,
        "word_vec_size": size.d_model,
        "transformer_ff": size.d_ff,
        "heads": size.n_heads,
        "layers": size.n_layers,
        "dropout": protocol.DROPOUT,
        "attention_dropout": 0.0,
        "label_smoothing": protocol.LABEL_SMOOTHING,
        "param_init": 0.0,
    }
    flags = [text for name, value in settings.items() for text in (f"-{name}", str(value))]
    flags += ["-share_vocab", "-share_embeddings", "-share_decoder_embeddings"]
    flags += ["-position_encoding", "-param_init_glorot", "-add_ffnbias"]
    options = parser.parse_args(flags)
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    return options


if __name__ == "__main__":
    protocol.train(build)
