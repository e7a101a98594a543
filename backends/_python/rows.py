"""Argument checks of operators on rows: the caller chooses the rank, so shapes are checked against each other."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_kind


def check_rows(operator: str, name: str, tensor: Tensor) -> None:
    """Raise TypeError or ValueError unless the tensor is of real numbers and has a last dimension."""
    check_kind(f"{operator}: {name}", tensor, "(*, row)", name, tensor)
    if tensor.dim() == 0:
        raise ValueError(f"{operator}: {name} was of rank 0, but should have at least one dimension, the row")


def check_like(operator: str, name: str, tensor: Tensor, first_name: str, first: Tensor) -> None:
    """Raise TypeError or ValueError unless the tensor has the shape, dtype and device of the first one."""
    check_kind(f"{operator}: {name}", tensor, f"that of {first_name}", first_name, first)
    if tensor.shape != first.shape:
        rank = "" if tensor.dim() == first.dim() else f"of rank {tensor.dim()} with shape "
        raise ValueError(
            f"{operator}: {name} was {rank}{tuple(tensor.shape)}, but should be {tuple(first.shape)}, "
            f"of rank {first.dim()}, the shape of {first_name}"
        )


def check_weight(operator: str, name: str, tensor: Tensor, first_name: str, first: Tensor) -> None:
    """Raise TypeError or ValueError unless the tensor has one element for each of a row of the first one."""
    check_kind(f"{operator}: {name}", tensor, f"(row of {first_name},)", first_name, first)
    wanted = tuple(first.shape[-1:])
    if tuple(tensor.shape) != wanted:
        rank = "" if tensor.dim() == 1 else f"of rank {tensor.dim()} with shape "
        raise ValueError(
            f"{operator}: {name} was {rank}{tuple(tensor.shape)}, but should be {wanted}, of rank 1, the last "
            f"dimension of {first_name}, whose shape is {tuple(first.shape)}"
        )


def check_rms_norm_arguments(input: Tensor, weight: Tensor | None, residual: Tensor | None) -> None:
    """Raise TypeError or ValueError unless weight has the length of a row and residual the shape of input."""
    check_rows("rms_norm", "input", input)
    if weight is not None:
        check_weight("rms_norm", "weight", weight, "input", input)
    if residual is not None:
        check_like("rms_norm", "residual", residual, "input", input)


def check_gated_arguments(operator: str, gate: Tensor, up: Tensor) -> None:
    """Raise TypeError or ValueError unless up has the shape of gate; both may have any rank."""
    check_kind(f"{operator}: gate", gate, "any", "gate", gate)
    check_like(operator, "up", up, "gate", gate)
