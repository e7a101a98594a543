"""torch.compile saves a view of the indices for backward and does not check that they have stayed the same."""

import torch


def rows(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return weight.index_select(0, indices.reshape(-1))


for name, function in (("eager", rows), ("compiled", torch.compile(rows))):
    weight = torch.zeros(4, 1, requires_grad=True)
    indices = torch.tensor([[0, 1], [2, 0]])
    result = function(weight, indices)
    indices.fill_(3)
    try:
        result.sum().backward()
    except RuntimeError as error:
        print(f"{name}: RuntimeError: {str(error)[:75]}...")
    else:
        print(f"{name}: the gradient is {weight.grad.flatten().tolist()}, and should be [2, 1, 1, 0]")
