"""Train LLTM on the adding problem with several backends, and compare their learning curves.

A sequence of T pairs (value, marker) has values uniform in [0, 1) and a marker of 1 at two places, 0 elsewhere; the
cell must answer with the sum of the two marked values. Always answering 1 costs 1/6, the variance of that sum: a
lower loss means that the cell remembers.

Every backend starts from the same weights and gets the same sequences, so the curves differ by rounding alone, unless
a gradient is wrong. Training amplifies rounding, more in some runs than in others. To measure this amplification, the
first backend is trained twice, the second time with one weight changed by a single rounding.

    python examples/adding_problem.py --backends python-autograd,aten-cpp --steps 200

Source: S. Hochreiter and J. Schmidhuber, "Long Short-Term Memory" (1997), section 5.4.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository, if the package is not installed

from harness.errors import HarnessError
from modules import LLTM

#: Two right backends differ by many roundings at each step: the allowance is this many times the effect of one.
ROUNDINGS = 1000

#: A wrong gradient changes the loss by more than this. If rounding may do so too, the run is inconclusive.
SIGNAL = 1e-3

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHART_HEIGHT, CHART_WIDTH = 12, 72


class Adder(nn.Module):
    """LLTM over a sequence (T, batch, 2), then a linear layer on the last state: one number for each sequence."""

    def __init__(self, state_size: int, backend: str, dtype: torch.dtype, emulated: bool) -> None:
        super().__init__()
        self.cell = LLTM(2, state_size, backend, dtype=dtype, emulated=emulated)
        self.readout = nn.Linear(state_size, 1, dtype=dtype)

    def forward(self, sequence: Tensor) -> Tensor:
        """(T, batch, 2) -> (batch,)."""
        state = None
        for step in sequence:
            state = self.cell(step, state)
        new_h, _ = state
        return self.readout(new_h).squeeze(1)


def draw_batch(generator: torch.Generator, length: int, batch: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Sequences (T, batch, 2) and their targets (batch,). One marker is in the first half, the other in the second."""
    values = torch.rand(length, batch, generator=generator, dtype=dtype)
    half = length // 2
    first = torch.randint(0, half, (1, batch), generator=generator)
    second = torch.randint(half, length, (1, batch), generator=generator)
    markers = torch.zeros_like(values).scatter_(0, torch.cat([first, second]), 1.0)
    return torch.stack([values, markers], dim=2), (values * markers).sum(0)


@dataclass(frozen=True)
class Run:
    """A name and the loss at each step."""

    name: str
    losses: list[float]

    def difference(self, reference: Run) -> float:
        """The largest relative difference from another run's losses; infinite if one is not a number."""
        pairs = zip(self.losses, reference.losses, strict=True)
        differences = [abs(ours - theirs) / theirs for ours, theirs in pairs]
        return max(math.inf if math.isnan(difference) else difference for difference in differences)


def train(backend: str, options: argparse.Namespace, nudged: bool = False) -> Run:
    """Train from the seed's weights on the seed's sequences; `nudged`: with one weight changed by one rounding."""
    dtype = getattr(torch, options.dtype)
    torch.manual_seed(options.seed)
    model = Adder(options.state_size, backend, dtype, options.emulated)
    if nudged:
        with torch.no_grad():
            model.cell.bias[0] *= 1 + torch.finfo(dtype).eps
    optimizer = torch.optim.Adam(model.parameters(), lr=options.learning_rate)
    generator = torch.Generator().manual_seed(options.seed)
    losses = []
    for _ in range(options.steps):
        sequence, target = draw_batch(generator, options.length, options.batch, dtype)
        loss = F.mse_loss(model(sequence), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return Run(f"{backend}, nudged" if nudged else backend, losses)


def table(runs: list[Run]) -> str:
    """Losses at five steps, and the greatest distance from the first run's curve."""
    steps = len(runs[0].losses)
    shown = sorted({round(fraction * (steps - 1)) for fraction in (0, 0.25, 0.5, 0.75, 1)})
    width = max(len(run.name) for run in runs)
    lines = [" " * width + "".join(f"{f'step {step + 1}':>11}" for step in shown) + f"{'difference':>13}"]
    for run in runs:
        losses = "".join(f"{run.losses[step]:>11.6f}" for step in shown)
        lines.append(f"{run.name:{width}}{losses}{run.difference(runs[0]):>13.1e}")
    return "\n".join(lines)


def chart(runs: list[Run]) -> str:
    """The curves on a logarithmic scale in plain text: a letter for each run, `*` for several at the same place."""
    steps = len(runs[0].losses)
    columns = min(CHART_WIDTH, steps)
    edges = [round(column * steps / columns) for column in range(columns + 1)]  # a column is the mean of its steps
    curves = [
        [math.log(sum(run.losses[start:end]) / (end - start)) for start, end in itertools.pairwise(edges)]
        for run in runs
    ]
    finite = [value for curve in curves for value in curve if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    rows = [[" "] * columns for _ in range(CHART_HEIGHT)]
    for letter, curve in zip(LETTERS, curves, strict=False):
        for column, value in enumerate(curve):
            if math.isfinite(value):
                row = rows[round((high - value) / max(high - low, 1e-12) * (CHART_HEIGHT - 1))]
                row[column] = letter if row[column] == " " else "*"
    lines = [
        f"{math.exp(high - (high - low) * index / (CHART_HEIGHT - 1)):>9.5f} |{''.join(row)}"
        for index, row in enumerate(rows)
    ]
    names = ", ".join(f"{letter} {run.name}" for letter, run in zip(LETTERS, runs, strict=False))
    return "\n".join([*lines, f"{'loss':>9} +{'-' * columns} step {steps}", f"{'':>11}{names}, * several"])


def save_plot(runs: list[Run], path: Path) -> str:
    """Save a PNG of the curves if matplotlib is installed; returns a message."""
    if importlib.util.find_spec("matplotlib") is None:
        return f"{path} was not written: matplotlib is not installed"
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    for run in runs:
        axes.semilogy(run.losses, label=run.name)
    axes.set(xlabel="step", ylabel="mean squared error", title="LLTM on the adding problem")
    axes.legend()
    figure.savefig(path)
    return f"wrote {path}"


def verdict(reference: Run, nudged: Run, others: list[Run]) -> tuple[bool, str]:
    """Whether all curves coincide, and a sentence with the result."""
    one_rounding = nudged.difference(reference)
    allowed = ROUNDINGS * max(one_rounding, torch.finfo(torch.float64).eps)
    if allowed > SIGNAL:
        return False, (
            f"Inconclusive: this training turns one rounding into a difference of {one_rounding:.1e}, so that the "
            "curves of right backends part too. Take float64, fewer steps or a lower learning rate."
        )
    worst = max(others, key=lambda run: run.difference(reference))
    difference = worst.difference(reference)
    coincide = difference <= allowed
    return coincide, (
        f"The curves {'coincide' if coincide else 'DO NOT coincide'}: {worst.name} differs from {reference.name} by "
        f"{difference:.1e} at most, relatively; one rounding makes {one_rounding:.1e}, and {allowed:.1e} is allowed."
    )


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backends",
        default="python-autograd,aten-cpp",
        metavar="A,B,...",
        help="public names, separated by commas; the first is the reference (default: %(default)s)",
    )
    parser.add_argument("--steps", type=int, default=200, help="training steps (default: %(default)s)")
    parser.add_argument("--length", type=int, default=16, help="pairs in a sequence, T (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="sequences in a step (default: %(default)s)")
    parser.add_argument("--state-size", type=int, default=16, help="units of the cell (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.02, help="of Adam (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and sequences (default: %(default)s)")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="(default: %(default)s)")
    parser.add_argument("--emulated", action="store_true", help="run CUDA sources on the CPU, if they are all there is")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="save a PNG of the curves (needs matplotlib)")
    options = parser.parse_args(arguments)
    options.backends = [name.strip() for name in options.backends.split(",") if name.strip()]
    if len(options.backends) < 2:
        parser.error("--backends should name two or more: there is nothing to compare")
    for name, least in (("steps", 1), ("length", 2), ("batch", 1), ("state_size", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} was {getattr(options, name)}, but should be at least {least}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Train and report. Returns 0 if the curves coincide, 1 if they do not or it is inconclusive, 2 on an error."""
    options = parsed(arguments)
    torch.set_num_threads(1)  # the tensors are too small to be worth a second thread
    first, *rest = options.backends
    try:
        reference, nudged = train(first, options), train(first, options, nudged=True)
        others = [train(backend, options) for backend in rest]
    except HarnessError as error:
        print(error, file=sys.stderr)
        return 2
    coincide, sentence = verdict(reference, nudged, others)
    print(table([reference, nudged, *others]), chart([reference, *others]), sentence, sep="\n\n")
    if options.plot:
        print(save_plot([reference, *others], options.plot))
    return 0 if coincide else 1


if __name__ == "__main__":
    sys.exit(main())
