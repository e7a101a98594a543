"""Sizes of linear layers: tiles and their tails, and the layers of models by activation."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, batch: int, features: int, outputs: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "in_features": features, "out_features": outputs}, origin, *tags)


FEW = (
    _case("digits", 16, 64, 128, "images of 8x8", "size", "benchmark"),
    _case("small", 3, 4, 5, "every size another, odd or below the vector width", "size", "small"),
    _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
    _case("tails", 17, 33, 65, "tails of tiles in all three sizes", "size"),
    _case("tile", 16, 32, 64, "full tiles in all three sizes", "size"),
)
CASES = (
    *FEW,
    _case("square", 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-row", 1, 3, 8, "batch 1", "size", "small"),
    _case("one-everything", 1, 1, 1, "the least that is not empty", "size", "small"),
    _case("no-outputs", 3, 4, 0, "an output of width 0", "size"),
    *(
        _case(f"outputs-{size}", 3, 5, size, "tail of a vector, a warp or a block", "size")
        for size in (3, 7, 31, 33, 127, 129, 255, 257, 1025)
    ),
    _case("long-sums", 5, 4099, 3, "sums of thousands of terms, which a kernel splits", "size"),
    _case("batch-70000", 70000, 2, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("opt-125m", 4, 768, 3072, "opt-125m/config.json: hidden_size, ffn_dim; relu", "benchmark", "model"),
    _case("more-than-2^31", 2**20 + 3, 2, 2100, "an output of more than 2^31 elements", "large"),
    _case("large", 8192, 4096, 16384, "opt-6.7b/config.json: hidden_size, ffn_dim; relu", "benchmark", "model"),
)
GELU = (
    *FEW,
    _case("bert-base", 4, 768, 3072, "bert-base-uncased/config.json: hidden_act gelu", "benchmark", "model"),
)
SILU = (
    *FEW,
    _case("llama-3-8b", 8192, 4096, 14336, "Meta-Llama-3-8B/config.json: hidden_act silu", "benchmark", "model"),
)
