"""The package's functions. Without a GPU it warns when it is imported, and no cell is judged."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Triton is not supported on current platform")
    from fla.modules.activations import swiglu
    from fla.modules.fused_cross_entropy import cross_entropy_loss
    from fla.modules.norm.layernorm import layer_norm, rms_norm
    from fla.modules.rotary import rotary_embedding

__all__ = ["cross_entropy_loss", "layer_norm", "rms_norm", "rotary_embedding", "swiglu"]
