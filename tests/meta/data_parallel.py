"""Train the LLTM module for one step on two processes: `python -m tests.meta.data_parallel FOLDER [cpu|cuda]`.

Each process has one half of a batch, and writes the results of each run to FOLDER/RANK.pt. The processes rendezvous by
a file in FOLDER, so that no port is needed, and communicate by gloo over the loopback interface or, with a GPU for
each, by NCCL. They are spawned here, or were started by torchrun.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from harness.judging.scenario import Scenario, realise
from modules import LLTM
from modules.lltm import State
from spec.lltm import OPERATOR

WORLD = 2
SCENARIO = Scenario((("batch", 8), ("input_features", 4), ("state_size", 5)), name="two-halves")
RATE = 0.5


class HeardOnRankZero(LLTM):
    """Its backward gives gradients on rank 0 only; those of the other rank are 0."""

    def forward(self, input: Tensor, state: State | None = None) -> State:
        outputs = super().forward(input, state)
        for tensor in outputs:
            tensor.register_hook(lambda gradient: gradient * int(dist.get_rank() == 0))
        return outputs


def _sharded(module: nn.Module) -> nn.Module:
    """The module under FSDP2, on the device of its parameters: its own choice would be a GPU if there is one."""
    mesh = init_device_mesh(next(module.parameters()).device.type, (WORLD,))
    sharded: nn.Module = fully_shard(module, mesh=mesh)
    return sharded


Way = Callable[..., nn.Module]
WAYS: dict[str, Way] = {"ddp": DistributedDataParallel, "fsdp": _sharded, "alone": lambda module: module}
TALK = {"cpu": "gloo", "cuda": "nccl"}
BACKENDS = {
    "cpu": ("python-manual-backward", "aten-cpp"),
    "cuda": ("python-manual-backward", "aten-cpp", "cuda-raw-pointer", "cuda-accessor", "cuda-fused"),
}


def right(device: str) -> dict[str, tuple[str, Callable[[], LLTM]]]:
    """By the name of a run: how the ranks are combined, and the module."""
    return {
        f"{way} {backend}": (way, partial(LLTM, 4, 5, backend=backend))
        for way in ("ddp", "fsdp")
        for backend in BACKENDS[device]
    }


WRONG: dict[str, tuple[str, Callable[[], LLTM]]] = {
    "nobody averages": ("alone", partial(LLTM, 4, 5)),
    "ddp of a module that is heard on rank 0": ("ddp", partial(HeardOnRankZero, 4, 5)),
    "fsdp of a module that is heard on rank 0": ("fsdp", partial(HeardOnRankZero, 4, 5)),
}


def _whole(tensor: Tensor) -> Tensor:
    """A copy of the whole tensor on every rank, if each holds a shard."""
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().cpu().clone()


def _step(rank: int, way: Way, module: LLTM, device: str) -> dict[str, dict[str, Tensor]]:
    """Gradients and new values of the parameters after one step of SGD on this rank's half of the batch."""
    call = realise(OPERATOR, SCENARIO, torch.float32, device)
    module.to(device)
    rows = slice(rank * len(call.inputs[0]) // WORLD, (rank + 1) * len(call.inputs[0]) // WORLD)
    input, weights, bias, old_h, old_cell = call.inputs
    module.load_state_dict({"weights": weights, "bias": bias})
    parallel = way(module)
    outputs = parallel(input[rows], (old_h[rows], old_cell[rows]))
    torch.autograd.backward(outputs, [g[rows] for g in call.cotangents if g is not None])
    gradients = {name: _whole(p.grad) for name, p in module.named_parameters() if p.grad is not None}
    torch.optim.SGD(parallel.parameters(), lr=RATE).step()
    return {"gradients": gradients, "parameters": {name: _whole(p) for name, p in module.named_parameters()}}


def work(rank: int, folder: Path, device: str) -> None:
    """All runs, as one of the two processes."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    if device == "cuda":
        torch.cuda.set_device(rank)
    meeting = f"file://{folder.resolve()}/meeting"
    wait = timedelta(seconds=120)
    dist.init_process_group(TALK[device], init_method=meeting, rank=rank, world_size=WORLD, timeout=wait)
    found = {name: _step(rank, WAYS[way], make(), device) for name, (way, make) in {**right(device), **WRONG}.items()}
    torch.save(found, folder / f"{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    where, what = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "cpu"
    if dist.is_torchelastic_launched():
        work(int(os.environ["LOCAL_RANK"]), where, what)
    else:
        torch.multiprocessing.spawn(work, (where, what), WORLD)
