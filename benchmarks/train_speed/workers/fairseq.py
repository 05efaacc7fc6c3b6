"""fairseq's Transformer, criterion, Adam and train_step."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.old_packages import hashable_dataclasses
from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size

with hashable_dataclasses():
    import fairseq
    from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
    from fairseq.data import Dictionary
    from fairseq.models.transformer import TransformerConfig, TransformerModelBase
    from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

_NEW_IDS = (1, 3, 0, 2)  # fairseq's pad, unk, bos, eos


def build(size: Size, vocab_size: int) -> Peer:
    words = Dictionary()
    for i in range(vocab_size - len(words)):
        words.add_symbol(f"word{i}")
    task = TranslationTask(TranslationConfig(), words, words)
    config = TransformerConfig(dropout=protocol.DROPOUT, share_all_embeddings=True)
    for side in (config.encoder, config.decoder):
        side.embed_dim, side.ffn_embed_dim = size.d_model, size.d_ff
        side.layers, side.attention_heads = size.n_layers, size.n_heads
    config.decoder.input_dim = config.decoder.output_dim = size.d_model
    model = TransformerModelBase.build_model(config, task)
    criterion = LabelSmoothedCrossEntropyCriterion(task, False, protocol.LABEL_SMOOTHING)
    settings = FairseqAdamConfig(adam_betas="(0.9, 0.98)", adam_eps=1e-9, lr=[1e-4])
    for layer in model.encoder.layers:
        for copy in layer.parameters(recurse=False):
            copy.requires_grad_(False)  # of the weights, for inference: training never uses them
    optimizer = FairseqAdam(settings, [p for p in model.parameters() if p.requires_grad])

    def convert(batch: Batch) -> dict[str, Any]:
        src, tgt_in, tgt_out = (protocol.renumber(ids, _NEW_IDS) for ids in batch[:3])
        tgt_in[tgt_in == words.bos()] = words.eos()  # with which fairseq's decoder starts
        src_lengths = (src != words.pad()).sum(dim=1)
        left_padded = [row.roll(len(row) - int(n)) for row, n in zip(src, src_lengths, strict=True)]
        return {
            "net_input": {
                "src_tokens": torch.stack(left_padded),
                "src_lengths": src_lengths,
                "prev_output_tokens": tgt_in,
            },
            "target": tgt_out,
            "ntokens": batch.n_tgt_tokens,
        }

    def update(sample: dict[str, Any]) -> float:
        loss, n_tokens, _ = task.train_step(sample, model, criterion, optimizer, update_num=0)
        optimizer.multiply_grads(1 / n_tokens)  # as its trainer does
        optimizer.step()
        optimizer.zero_grad()
        return loss.item() / n_tokens

    return Peer(fairseq.__version__, model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
