"""Argument checks of operators on rows: the caller chooses the rank, so shapes are checked against each other."""

from __future__ import annotations

import torch
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


def check_cross_entropy_arguments(logits: Tensor, labels: Tensor) -> None:
    """Raise TypeError or ValueError unless logits are (batch, classes) and labels (batch,), of int64."""
    check_kind("cross_entropy: logits", logits, "(batch, classes)", "logits", logits)
    if logits.dim() != 2:
        raise ValueError(
            f"cross_entropy: logits was of rank {logits.dim()} with shape {tuple(logits.shape)}, "
            "but should be of rank 2: (batch, classes)"
        )
    if not isinstance(labels, Tensor):
        raise TypeError(f"cross_entropy: labels was {type(labels).__name__}, but should be a Tensor of shape (batch,)")
    if labels.dtype != torch.int64:
        raise TypeError(f"cross_entropy: labels was of dtype {labels.dtype}, but should be torch.int64")
    if labels.device != logits.device:
        raise TypeError(f"cross_entropy: labels was on {labels.device}, but should be on {logits.device}, with logits")
    if tuple(labels.shape) != (logits.shape[0],):
        rank = "" if labels.dim() == 1 else f"of rank {labels.dim()} with shape "
        raise ValueError(
            f"cross_entropy: labels was {rank}{tuple(labels.shape)}, but should be {(logits.shape[0],)}, of rank 1, "
            f"one for each row of logits, whose shape is {tuple(logits.shape)}"
        )
