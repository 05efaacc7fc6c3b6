"""JoeyNMT's Transformer and loss."""

# ruff: noqa: E402 - what the peer needs to be imported at all comes before its import

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace

import torch

from benchmarks.old_packages import NOT_FOR_JOEYNMT, leave_out
from benchmarks.train_speed.workers import protocol
from benchmarks.train_speed.workers.protocol import Batch, Peer, Size

leave_out(*NOT_FOR_JOEYNMT)
from joeynmt.batch import Batch as JoeyBatch
from joeynmt.model import build_model
from joeynmt.transformer_layers import MultiHeadedAttention, PositionwiseFeedForward
from joeynmt.vocabulary import Vocabulary

_PAD_ID, _EOS_ID = 1, 3
_NEW_IDS = (_PAD_ID, 0, 2, _EOS_ID)  # JoeyNMT's pad, unk, bos, eos


def build(size: Size, vocab_size: int) -> Peer:
    specials = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
        unk_id=0, pad_id=_PAD_ID, bos_id=2, eos_id=_EOS_ID, sep_id=None, lang_tags=[],
    )  # fmt: skip
    vocabulary = Vocabulary([f"word{i}" for i in range(vocab_size - len(_NEW_IDS))], specials)
    stack = {
        "type": "transformer",
        "num_layers": size.n_layers,
        "num_heads": size.n_heads,
        "hidden_size": size.d_model,
        "ff_size": size.d_ff,
        "dropout": protocol.DROPOUT,
        "layer_norm": "post",
        "activation": "relu",
        "embeddings": {"embedding_dim": size.d_model, "scale": True, "dropout": protocol.DROPOUT},
    }
    settings = {"tied_embeddings": True, "tied_softmax": True, "encoder": stack, "decoder": stack}
    model = build_model(settings, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", protocol.LABEL_SMOOTHING)
    for module in model.modules():
        if isinstance(module, MultiHeadedAttention):
            module.dropout.p = 0.0
        elif isinstance(module, PositionwiseFeedForward):
            module.pwff_layer[2].p = 0.0  # after the activation
    optimizer = protocol.adam(model)

    def convert(batch: Batch) -> JoeyBatch:
        src, tgt_in, tgt_out = (protocol.renumber(ids, _NEW_IDS) for ids in batch[:3])
        return JoeyBatch(
            src=src,
            src_length=(src != _PAD_ID).sum(dim=1),
            src_prompt_mask=None,
            trg=torch.cat([tgt_in[:, :1], tgt_out], dim=1),  # bos to eos; it shifts this itself
            trg_prompt_mask=None,
            indices=torch.arange(len(src)),
            device=torch.device("cpu"),
            pad_index=_PAD_ID,
            eos_index=_EOS_ID,
        )

    def update(batch: JoeyBatch) -> float:
        total, *_ = model(return_type="loss", **vars(batch))
        loss = batch.normalize(total, "tokens")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return Peer(version("joeynmt"), model, convert, update)


if __name__ == "__main__":
    protocol.train(build)
