"""The heads of a model by name, and the model without some of them."""

# Letters: H heads, U value width, D d_model.

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from dragoman.errors import ConfigError
from dragoman.model.config import ModelConfig
from dragoman.translator import Translator

if TYPE_CHECKING:
    from dragoman.model.attention import MultiHeadAttention
    from dragoman.model.transformer import Transformer

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Head(NamedTuple):
    """One head: of the encoder's self-attention, the decoder's, or the attention from one to the other.

    Layer and head count from 1, here and wherever people see them: "cross.2.3" is the third head of the second
    decoder layer's attention over the source.
    """

    kind: Kind
    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer}.{self.head}"


def heads_of(config: ModelConfig) -> list[Head]:
    """All heads of a model, layer by layer."""
    n_layers = {
        "encoder": config.n_encoder_layers,
        "decoder": config.n_decoder_layers,
        "cross": config.n_decoder_layers,
    }
    return [
        Head(kind, layer, head)
        for kind in KINDS
        for layer in range(1, n_layers[kind] + 1)
        for head in range(1, config.n_heads + 1)
    ]


def parse_heads(names: Iterable[str], config: ModelConfig) -> list[Head]:
    """The heads with these names, each once, in the order of the model."""
    known = {str(head): head for head in heads_of(config)}
    wanted = set(names)
    unknown = sorted(wanted - known.keys())
    if unknown:
        raise ConfigError(
            f'this model has no head "{unknown[0]}"',
            hint=f"name it kind.layer.head, counted from 1, up to {', '.join(_last_names(config))}",
        )
    return [head for name, head in known.items() if name in wanted]


def without_heads(translator: Translator, heads: Sequence[Head]) -> Translator:
    """The translator as if these heads found nothing: what each hands to W^O is zero.

    The other weights are shared with the translator given, which goes on as before, also at the same time. The engine
    is our own.
    """
    from dragoman.engines.torch_engine import TorchEngine

    engine = TorchEngine(_without_heads(torch_model(translator), heads))
    return Translator(engine, translator.subwords, translator.config)


def torch_model(translator: Translator) -> Transformer:
    """The model itself."""
    from dragoman.engines.torch_engine import TorchEngine

    engine = translator.looked_into()
    assert isinstance(engine, TorchEngine)
    return engine.model


def _without_heads(model: Transformer, heads: Sequence[Head]) -> Transformer:
    """A model that shares its weights with this one, but for the columns of W^O that read the heads: those are zero."""
    from torch import nn

    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    changed = copy.deepcopy(model, shared)
    for kind, layer, head in heads:
        attention = _attention(changed, kind, layer)
        weight_DHU = attention.output.weight.detach().clone().view(model.config.d_model, attention.n_heads, -1)
        weight_DHU[:, head - 1] = 0
        attention.output.weight = nn.Parameter(weight_DHU.flatten(1), requires_grad=False)
    return changed.eval()


def _attention(model: Transformer, kind: Kind, layer: int) -> MultiHeadAttention:
    found: Any = (model.encoder if kind == "encoder" else model.decoder)[layer - 1]
    return found.cross_attention if kind == "cross" else found.self_attention


def _last_names(config: ModelConfig) -> list[str]:
    return [str(Head(kind, config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers, config.n_heads))
            for kind in KINDS]  # fmt: skip
