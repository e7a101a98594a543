"""nn.LSTMCell and nn.GRUCell on CUDA read another place of memory where index times stride is 2^31 or more."""

import torch

torch.manual_seed(0)
step = 2**30  # elements from row to row, so row 2 begins at 2^31
memory = torch.full((4 * step + 8,), 7.0, dtype=torch.float16, device="cuda")  # 8.6 GB
rows = torch.randn(3, 5, device="cuda").half()
for name in ("LSTMCell", "GRUCell"):
    cell = getattr(torch.nn, name)(4, 5, device="cuda", dtype=torch.float16)
    x, h = torch.randn(3, 4, device="cuda").half(), torch.randn(3, 5, device="cuda").half()
    # Offsets of -2^31 elements are inside the memory too: nothing outside it is read.
    wide = memory.as_strided((3, 5), (step, 1), 2 * step)
    wide.copy_(rows)
    memory[:5] = -3.0  # what an offset of 2^31 that wraps to -2^31 finds
    calls = {layout: (h, state) if name == "LSTMCell" else state for layout, state in (("dense", rows), ("wide", wide))}
    found = {layout: cell(x, state) for layout, state in calls.items()}
    doubled = tuple(each.double() for each in (h, rows)) if name == "LSTMCell" else rows.double()
    exact = cell.double()(x.double(), doubled)
    for layout, output in found.items():
        first, right = (each[0] if isinstance(each, tuple) else each for each in (output, exact))
        off = (first.double() - right).abs().amax(1).tolist()
        print(f"nn.{name}, {layout} state: rows off by {', '.join(f'{each:.1e}' for each in off)}")
