"""The package's functions. It warns when it is imported: of a missing GPU, and of packages that it does without."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from fla.modules.activations import swiglu
    from fla.modules.fused_cross_entropy import cross_entropy_loss
    from fla.modules.norm.layernorm import layer_norm, rms_norm
    from fla.modules.rotary import rotary_embedding

__all__ = ["cross_entropy_loss", "layer_norm", "rms_norm", "rotary_embedding", "swiglu"]
