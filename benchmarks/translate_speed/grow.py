"""A base-size model that translates, without the days that training one takes on two cores.

`python -m benchmarks.translate_speed.grow NARROW WIDE` grows a trained model to the shape of `base`: every unit stands
there several times, layers that add nothing follow the trained ones, and every weight gets a little noise. It computes
what the narrow one does, so that it stops where a trained model stops, at the cost of the wide one. The narrow model is
pre-norm with learned positions (sinusoids of another width are others), for instance one of

    dragoman train --budget 12m --vocab-size 32000 --set model.positions=learned --set model.d_model=128 \\
        --set model.d_ff=512 --set model.n_heads=8 --set model.n_encoder_layers=3 --set model.n_decoder_layers=3 …
"""

# Letters: D d_model, O outputs, I inputs of a linear layer.

from __future__ import annotations

import argparse
import math
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.checkpoint.folder import CONFIG, SHORTLIST, SUBWORDS, WEIGHTS, new_folder, write_text
from dragoman.checkpoint.format import load_tensors, save_tensors
from dragoman.config import load_config, to_toml
from dragoman.model.config import ModelConfig
from dragoman.model.transformer import Transformer

_NOISE = 0.02  # of the deviation of a weight
_SIDES = ("encoder", "decoder")
_NEXT_TO_NOTHING = 1e-3  # of what a layer that was not trained adds


def grown(
    narrow: dict[str, Tensor], config: ModelConfig, wide: ModelConfig, noise: float = _NOISE
) -> dict[str, Tensor]:
    """The weights of a model of the shape `wide` that computes what the narrow one does, but for the noise."""
    times = wide.d_model // config.d_model
    fits = wide == replace(
        config, d_model=times * config.d_model, d_ff=times * config.d_ff,
        n_encoder_layers=wide.n_encoder_layers, n_decoder_layers=wide.n_decoder_layers,
    )  # fmt: skip
    if not fits or config.norm != "pre" or config.positions != "learned" or config.activation != "relu":
        raise SystemExit("the narrow model must be pre-norm with ReLU and learned positions, and as wide in proportion")
    weights = {name: value.clone() for name, value in Transformer(wide).state_dict().items()}
    depths = {side: (getattr(config, f"n_{side}_layers"), getattr(wide, f"n_{side}_layers")) for side in _SIDES}
    for name, value in weights.items():
        side, number, *rest = name.split(".")
        if side in depths and number.isdigit():
            n_narrow, n_wide = depths[side]
            place, is_trained = int(number) * n_narrow // n_wide, int(number) * n_narrow % n_wide < n_narrow
            if not is_trained:
                if rest[-2] in ("output", "outer"):
                    value.mul_(_NEXT_TO_NOTHING)
                continue
            source = narrow[".".join([side, str(place), *rest])]
        else:
            source = narrow[name]
        value.copy_(_widened(name, source, times))
        value.add_(torch.randn_like(value), alpha=noise * float(value.std()))
    return weights


def _widened(name: str, value: Tensor, times: int) -> Tensor:
    """The weight with each unit `times` times; what reads them reads a share of each."""
    if name == "embedding.weight":  # is multiplied by sqrt(d_model) when it is read
        return value.repeat_interleave(times, dim=1) / math.sqrt(times)
    if name.endswith("learned.weight"):
        return value.repeat_interleave(times, dim=1)
    if name.startswith("decoder_norm."):  # so that the product with that embedding is what it was
        return value.repeat_interleave(times) / math.sqrt(times)
    if value.dim() == 1:
        return value.repeat_interleave(times)
    value_OI = value.repeat_interleave(times, dim=0).repeat_interleave(times, dim=1) / times
    # Products of queries and keys have as many more terms, and are divided by sqrt(d_k).
    return value_OI / math.sqrt(times) if ".query." in name else value_OI


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("narrow", type=Path, metavar="NARROW")
    parser.add_argument("wide", type=Path, metavar="WIDE")
    args = parser.parse_args()
    torch.manual_seed(1)
    config, base = load_config(args.narrow), asdict(ModelConfig.base())
    shape = {name: base[name] for name in ("d_model", "d_ff", "n_encoder_layers", "n_decoder_layers")}
    wide = replace(config, model=replace(config.model, **shape))
    weights = grown(load_tensors(args.narrow / WEIGHTS), config.model, wide.model)
    with new_folder(args.wide) as part:
        save_tensors(part / WEIGHTS, weights)
        write_text(part / CONFIG, to_toml(wide))
        for name in (SUBWORDS, SHORTLIST):
            shutil.copyfile(args.narrow / name, part / name)


if __name__ == "__main__":
    main()
