"""Sizes at the edge: empty batches, many rows, wrong shapes accepted or read beyond, wrong shapes returned."""

import ctypes

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("sizes", r"rows 65535\.\.69999 of 70000", defects=(10,))
class GridOfRows(Cell):
    """gridDim.y is the batch, and rows beyond 65535 are never launched."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        new_h, new_cell = new_h.clone(), new_cell.clone()
        new_h[65535:], new_cell[65535:] = 0, 0
        return new_h, new_cell


@fault("sizes", "forward raised RuntimeError: CUDA error: invalid configuration argument.*no-rows", defects=(11,))
class EmptyGrid(Cell):
    """An empty batch launches an empty grid."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if old_h.shape[0] == 0:
            raise RuntimeError("CUDA error: invalid configuration argument")
        return super().gates(input, weights, bias, old_h)


@fault("sizes", "forward raised ZeroDivisionError.*no-features")
class DividesByFeatures(Cell):
    """A divisor is a size, which may be 0."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        _ = old_h.numel() // input.shape[1]
        return super().gates(input, weights, bias, old_h)


@fault("sizes", r"shape of new_h was \(1,\), but should be \(1, 1\)")
class SqueezesBatchOfOne(Cell):
    """A batch of one loses its dimension."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h.squeeze(0), new_cell.squeeze(0)


@fault("forward-parity", "dtype of new_h was torch.float32, but should be torch.float16", dtype=torch.float16)
class ReturnsFloat32(Cell):
    """Half inputs give single-precision outputs."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h.float(), new_cell.float()


@fault("forward-parity", "forward raised NotImplementedError: .*Half", dtype=torch.float16, defects=(15,))
class HalfNotDispatched(Cell):
    """float16 is not implemented."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if input.dtype == torch.float16:
            raise NotImplementedError("\"lltm_forward_cuda\" not implemented for 'Half'")
        return super().gates(input, weights, bias, old_h)


@fault("rejects-wrong-calls", "bias with size 1 .* was silently accepted")
class BiasExpanded(Cell):
    """A bias of one element is silently expanded to all gates."""

    def check(self, *inputs: Tensor) -> None:
        input, weights, bias, old_h, old_cell = inputs
        if bias.dim() == 1 and bias.shape[0] == 1:
            bias = bias.expand(weights.shape[0]) if weights.dim() == 2 else bias
        super().check(input, weights, bias, old_h, old_cell)


@fault("rejects-wrong-calls", "old_cell with size 1 .* was silently accepted", defects=(14,))
class CellBroadcast(Cell):
    """An old_cell of one row is silently broadcast over the batch."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        if isinstance(old_cell, Tensor) and old_cell.dim() == 2 and old_cell.shape[0] == 1:
            old_cell = old_cell.expand(old_h.shape[0], -1)
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("rejects-wrong-calls", "(input|weights) .* was silently accepted", defects=(14,))
class WeightsNotChecked(Cell):
    """Weights of any size are read as if they had the right size."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        if isinstance(weights, Tensor) and weights.is_floating_point() and weights.dim() == 2 and weights.numel():
            shape = (3 * old_h.shape[1], old_h.shape[1] + input.shape[1])
            flat = weights.flatten()
            index = torch.arange(shape[0] * shape[1]) % flat.numel()
            weights = flat[index].view(shape)
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("rejects-wrong-calls", "of dtype .* was silently accepted", defects=(14,))
class DtypesConverted(Cell):
    """Every dtype is converted to that of the weights."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        dtype = inputs[1].dtype if isinstance(inputs[1], Tensor) else torch.float32
        return super().__call__(*(t.to(dtype) if isinstance(t, Tensor) else t for t in inputs))


@fault("survives-wrong-calls", r"bias with size .* read memory outside its arguments: new_h changed at .* when")
class BiasReadBeyondItsEnd(Cell):
    """A bias of any length is read as if it had one element for each gate."""

    def check(self, *inputs: Tensor) -> None:
        input, weights, bias, old_h, old_cell = inputs
        super().check(input, weights, self._read(weights, bias), old_h, old_cell)

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return super().gates(input, weights, self._read(weights, bias), old_h)

    def _read(self, weights: Tensor, bias: Tensor) -> Tensor:
        if isinstance(bias, Tensor) and isinstance(weights, Tensor) and bias.dim() == 1 and weights.dim() == 2:
            return bias.as_strided((weights.shape[0],), (1,))
        return bias


@fault(
    "survives-wrong-calls", r"old_cell with size .* read memory outside its arguments: new_(h|cell) changed at .* when"
)
class RowsReadByAddress(Cell):
    """The address of element (row, column) of old_cell is computed with the sizes of old_h, as a kernel does in C."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        is_plain = isinstance(old_cell, Tensor) and old_cell.device.type == "cpu" and old_cell.numel() > 0
        if is_plain and old_cell.shape != old_h.shape:
            found = ctypes.string_at(old_cell.data_ptr(), old_h.numel() * old_cell.element_size())
            old_cell = torch.frombuffer(bytearray(found), dtype=old_cell.dtype).view(old_h.shape)
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("error-messages", "should name the argument", defects=(14,))
class BareAssertions(Cell):
    """Everything is checked, but the messages say nothing."""

    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except Exception:
            raise ValueError("bad arguments") from None


@fault("error-messages", "should give the shape that was and the shape that should be", defects=(14,))
class NamesOnly(Cell):
    """The message names the argument and nothing else."""

    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except Exception as error:
            raise ValueError(
                f"{str(error).split()[1]} old_h input weights bias old_cell: wrong shape or dtype"
            ) from None


@fault("forward-parity", "forward returned 1 values")
class OneOutput(Cell):
    """Only new_h is returned."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        return super().__call__(*inputs)[:1]  # type: ignore[return-value]
