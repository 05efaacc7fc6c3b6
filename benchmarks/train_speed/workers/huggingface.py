"""Hugging Face's MarianMTModel with its fused attention."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch.nn.functional as F
import transformers
from torch import Tensor

from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size


def build(size: Size, vocab_size: int) -> Peer:
    config = transformers.MarianConfig(
        vocab_size=vocab_size,
        d_model=size.d_model,
        encoder_layers=size.n_layers,
        decoder_layers=size.n_layers,
        encoder_attention_heads=size.n_heads,
        decoder_attention_heads=size.n_heads,
        encoder_ffn_dim=size.d_ff,
        decoder_ffn_dim=size.d_ff,
        activation_function="relu",
        dropout=protocol.DROPOUT,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        use_cache=False,
        max_position_embeddings=512,
        pad_token_id=protocol.PAD_ID,
        bos_token_id=protocol.BOS_ID,
        eos_token_id=protocol.EOS_ID,
        forced_eos_token_id=protocol.EOS_ID,
        decoder_start_token_id=protocol.BOS_ID,
        attn_implementation="sdpa",
    )
    model = transformers.MarianMTModel(config)
    optimizer = protocol.adam(model)

    def convert(batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        inputs = {
            "input_ids": batch.src_BS,
            "attention_mask": (batch.src_BS != protocol.PAD_ID).long(),
            "decoder_input_ids": batch.tgt_in_BT,
        }
        return inputs, batch.tgt_out_BT.flatten()

    def update(batch: tuple[dict[str, Tensor], Tensor]) -> float:
        inputs, tgt_out = batch
        # Faster than the Trainer's own LabelSmoother, and the same loss.
        loss = F.cross_entropy(
            model(**inputs).logits.flatten(0, 1),
            tgt_out,
            ignore_index=protocol.PAD_ID,
            label_smoothing=protocol.LABEL_SMOOTHING,
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Peer(transformers.__version__, model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
