"""The operators as torch.nn modules, with the backend as an argument."""

from modules.layer_norm import LayerNorm
from modules.lltm import LLTM, LLTMSequence
from modules.mlp import MLP

__all__ = ["LLTM", "MLP", "LLTMSequence", "LayerNorm"]
