"""fla-core's rotary embedding raises for more than 65535 sequences."""

import torch
from fla.modules.rotary import rotary_embedding

tables = torch.ones(1, 2, device="cuda")
for sequences in (65535, 65536):
    try:
        rotary_embedding(torch.zeros(sequences, 1, 1, 4, device="cuda"), tables, tables)
        print(f"{sequences} sequences: a result")
    except RuntimeError as error:
        print(f"{sequences} sequences raised RuntimeError: {error}")
