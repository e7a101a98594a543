"""Run scenarios and compare the results with the oracle: the common part of all properties that compare values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.errors import Ended, Failure, NoEvidence, NotTaken
from harness.judging import ulps
from harness.judging.compare import ANYTHING, NOT_FINITE, SAME, Comparison, compare, shown
from harness.judging.divergence import first_divergence
from harness.judging.explain import explain, where_wrong
from harness.judging.oracle import Expected, expected
from harness.judging.reproducer import script
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject
from harness.judging.suspicion import reference_fails_too
from harness.report.parts import EVIDENT
from spec.contract import Operator, TensorArg
from spec.envelope import Envelope, everywhere

EVERYTHING = "outputs and gradients"
OUTPUTS = "outputs"
#: How a failure begins that a property found although it varied nothing.
FOLLOWS = "follows from the plain call, which is wrong already: "
_NOT_OF_THE_CALL = (
    "it depends on earlier calls, on chance or on memory that was not written; a script that makes this call alone may "
    "not show it"
)


class Tally:
    """The results of a property over its scenarios: how many, the worst error, and which tensors had evidence.

    With `in_ulps` also the errors of all elements in units in the last place.
    """

    def __init__(self, subject: Subject, in_ulps: bool = False) -> None:
        self.subject = subject
        self.scenarios = 0
        self.precise = 0
        self.in_ulps = in_ulps
        #: Failures in which the reference in this dtype fails too.
        self.suspected: list[str] = []
        #: Those of calls of which nothing is asked then.
        self.undecided: list[str] = []
        #: What the reference of a derived contract said of calls that it does not take.
        self.not_taken: list[str] = []
        #: Counts of `harness.judging.ulps.histogram`, for outputs and for gradients.
        self.ulps: dict[str, Tensor] = {}
        self.evidence: dict[str, bool] = {}
        self.worst: dict[str, Any] = {"used": -1.0}

    def run(self, scenario: Scenario, what: str = EVERYTHING, spared: bool = False) -> None:
        """Call the candidate once and compare all that it returns with the oracle. Raises Failure with a reproducer.

        Where the reference in this dtype fails too, there is no evidence at the end; with `spared`, nothing is asked.
        Nor is anything asked of a call that the reference does not take.
        """
        try:
            # To explain a failure takes longer than the call, and is in vain where nothing is asked.
            self._run(scenario, what, explained=not spared)
        except NotTaken as why:
            self.not_taken.append(str(why))
        except Failure as failure:
            if not self.doubts(scenario, failure, spared):
                told = self._explained(scenario, what, failure) if spared and failure.tensor else failure
                raise told.adding(reproducer=script(self.subject, scenario, str(told))) from failure

    def _explained(self, scenario: Scenario, what: str, found: Failure) -> Failure:
        """The failure of the same call, with an explanation."""
        try:
            self._run(scenario, what)
        except Failure as failure:
            return failure
        return found.adding(f"the same call again is right: {_NOT_OF_THE_CALL}")

    def doubts(self, scenario: Scenario, failure: Failure, spared: bool) -> bool:
        """Whether the reference in this dtype fails where this call did. Then it is noted, as `run` says."""
        if not failure.tensor:
            return False
        measure = expected(self.subject.operator, scenario, self.subject.dtype)
        rule = _specials(self.subject.operator, scenario, is_gradient=failure.tensor.startswith("gradient of "))
        ours = reference_fails_too(self.subject, scenario, measure, failure.tensor, rule)
        if ours:
            (self.undecided if spared else self.suspected).append(str(failure))
        return ours

    def _run(self, scenario: Scenario, what: str, explained: bool = True) -> None:
        subject = self.subject
        # The oracle comes first, so that a candidate cannot disturb it.
        measure = expected(subject.operator, scenario, subject.dtype)
        call = subject.realise(scenario)
        outputs = subject.outputs(call, scenario)
        whole = call if explained else None
        self.hold_all(scenario, measure, outputs, {}, whole)
        if what == EVERYTHING:
            self.hold_all(scenario, measure, (), subject.gradients(call, outputs, scenario), whole)
        self.scenarios += 1
        self.precise += measure.precise

    def run_all(self, scenarios: Iterable[Scenario], what: str = EVERYTHING) -> dict[str, Any]:
        """Run each scenario and return the figures. Raises Failure, or NoEvidence if nothing could have failed."""
        for scenario in scenarios:
            self.run(scenario, what)
        return self.figures()

    def first_plainly(self, *scenarios: Scenario) -> None:
        """Make the plain calls that a property varies. Raises Failure that says so if one is wrong by itself."""
        for scenario in scenarios:
            try:
                self.run(scenario)
            except Ended:
                raise
            except Failure as failure:
                raise failure.prefixed(FOLLOWS) from failure

    def hold_all(
        self,
        scenario: Scenario,
        measure: Expected,
        outputs: Sequence[Tensor],
        gradients: Mapping[str, Tensor],
        call: Call | None = None,
    ) -> None:
        """Compare all outputs (or none) and any gradients of one call. Raises Failure for the first that is wrong.

        Pass `call` if the scenario describes the call completely: only then can other calls explain a difference.
        """
        for arg, value in zip(self.subject.operator.outputs if outputs else (), outputs, strict=True):
            self.hold(scenario, measure, arg, value, is_gradient=False, call=call)
        for arg in self.subject.operator.inputs:
            if arg.name in gradients:
                self.hold(scenario, measure, arg, gradients[arg.name], is_gradient=True, call=call)

    def hold(
        self,
        scenario: Scenario,
        measure: Expected,
        arg: TensorArg,
        got: Tensor,
        is_gradient: bool,
        call: Call | None = None,
    ) -> None:
        """Compare one tensor with its envelope. Raises Failure with an explanation of the difference."""
        name = f"gradient of {arg.name}" if is_gradient else arg.name
        envelope = (measure.gradients if is_gradient else measure.outputs)[arg.name]
        found = compare(got, envelope, _specials(self.subject.operator, scenario, is_gradient))
        if got.numel() > 0:
            self.evidence[name] = self.evidence.get(name, False) or name in measure.evident
        worst = found.figures(name, scenario.describe(self.subject.operator))
        if found.holds:
            if self.in_ulps and not envelope.discrete:
                self._count(found.error, envelope, "gradients" if is_gradient else "outputs")
            if found.worst.used > self.worst["used"]:
                self.worst = worst
            return
        if call is None:
            sentences = [where_wrong(found.wrong, arg, dict(scenario.sizes))]
        else:
            sentences = self._another_result(scenario, arg, is_gradient, got, found.place)
            sentences = sentences or self._layouts_to_blame(scenario, arg, is_gradient, call, got)
            sentences += explain(self.subject.operator, scenario, arg, is_gradient, got, envelope, found)
            if not is_gradient:
                sentences += filter(None, [first_divergence(self.subject, scenario)])
        raise Failure(
            f"{_headline(name, got, envelope, found)} [{scenario.describe(self.subject.operator)}]"
            + "".join(f"\n  - {sentence}" for sentence in sentences),
            figures={} if found.special else {"worst": worst},
            tensor=name,
        )

    def _count(self, error: Tensor, envelope: Envelope, kind: str) -> None:
        usable = envelope.usable
        counts = ulps.histogram(error[usable], envelope.exact[usable], envelope.dtype)
        self.ulps[kind] = self.ulps.get(kind, torch.zeros_like(counts)) + counts

    def _another_result(
        self, scenario: Scenario, arg: TensorArg, is_gradient: bool, got: Tensor, place: tuple[int, ...]
    ) -> list[str]:
        """Whether the same call gives something else now; then no property of the call itself is to blame."""
        again = self._returned(scenario, arg, is_gradient, self.subject.realise(scenario))
        if again is None or again.shape != got.shape:
            return []
        if bool(((again == got) | (again.isnan() & got.isnan())).all()):
            return []
        return [f"the same call again gives {shown(again[place].item())} there: {_NOT_OF_THE_CALL}"]

    def _layouts_to_blame(
        self, scenario: Scenario, arg: TensorArg, is_gradient: bool, call: Call, got: Tensor
    ) -> list[str]:
        """Whether the result is right with other numbers between the values, or with nothing between them."""
        odd = [name for name, layout in scenario.layouts if layout != "contiguous"]
        odd += [f"the cotangent of {name}" for name, kind in scenario.cotangents if kind in _STRIDED_COTANGENTS]
        if not odd:
            return []
        # Padding that is read and used gives a wrong result with 1 in place of NaN too; padding times 0 does not.
        if bool(got.isnan().any()) and self._is_right(
            scenario, arg, is_gradient, self.subject.realise(scenario, around=1.0)
        ):
            return [f"the padding between rows is read and multiplied by 0, which a NaN survives: {' or '.join(odd)}"]
        plain = Call(
            tuple(t.detach().clone().contiguous().requires_grad_(t.requires_grad) for t in call.inputs),
            tuple(g if g is None else g.clone().contiguous() for g in call.cotangents),
        )
        if not self._is_right(scenario, arg, is_gradient, plain):
            return []
        return [f"the same values laid out contiguously come out right: the strides of {' or '.join(odd)} are ignored"]

    def _is_right(self, scenario: Scenario, arg: TensorArg, is_gradient: bool, call: Call) -> bool:
        """Whether this tensor keeps its allowance if the values of the scenario are laid out as in `call`."""
        measure = expected(self.subject.operator, scenario, self.subject.dtype)
        value = self._returned(scenario, arg, is_gradient, call)
        envelope = (measure.gradients if is_gradient else measure.outputs)[arg.name]
        rule = _specials(self.subject.operator, scenario, is_gradient)
        return value is not None and compare(value, envelope, rule).holds

    def _returned(self, scenario: Scenario, arg: TensorArg, is_gradient: bool, call: Call) -> Tensor | None:
        """This tensor of that call; None if the call fails."""
        try:
            outputs = self.subject.outputs(call, scenario)
            if is_gradient:
                return self.subject.gradients(call, outputs, scenario)[arg.name]
        except Failure:
            return None
        return outputs[[out.name for out in self.subject.operator.outputs].index(arg.name)]

    def blind(self) -> list[str]:
        """Tensors that were compared although any wrong answer would have passed."""
        return sorted(name for name, seen in self.evidence.items() if not seen)

    def figures(self) -> dict[str, Any]:
        """Figures for the report.

        Raises NoEvidence if a tensor was compared although any wrong answer would pass, or if this may be our fault. A
        part of a cell says of which tensors it has evidence: other parts may have what it lacks.
        """
        if self.suspected:
            first, *others = self.suspected
            more = f" (and {len(others)} more scenarios)" if others else ""
            dtype = self.subject.dtype_name
            if self.subject.operator.by_reference and self.subject.dtype in (torch.float16, torch.bfloat16):
                raise NoEvidence(
                    f"the reference in {dtype} fails there too: an operation of it may add up in {dtype}. A reference "
                    f"that computes in float32, by .float() and at last .to(x.dtype), tells right from wrong{more}: "
                    f"{first}"
                )
            raise NoEvidence(
                f"the suite suspects itself: the reference in {dtype} fails there too. Please report it{more}: {first}"
            )
        if self.not_taken and not self.scenarios:
            raise NoEvidence(self.not_taken[0])
        blind = self.blind()
        if blind and not self.subject.is_part:
            if not set(blind) - {arg.name for arg in self.subject.operator.outputs if not arg.is_floating}:
                exact = ""
                if self.subject.operator.by_reference:
                    exact = (
                        ". Whole numbers are exact once the reference has rounded them: torch.round, .to(torch.int8)"
                    )
                raise NoEvidence(f"zeros or the next integer would have passed too for: {', '.join(blind)}{exact}")
            steps = ""
            if self.subject.operator.has_steps:
                steps = (
                    ". Rounding may decide what the reference rounds to: let it round what it has computed in float32"
                )
            raise NoEvidence(f"zeros or a 5% error would have passed too for: {', '.join(blind)}{steps}")
        rare = {
            "beyond_float64": self.precise,
            "undecided": len(self.undecided),
            "not_taken": len(self.not_taken),
        }
        some = {name: number for name, number in rare.items() if number}
        figures = {"scenarios": self.scenarios, **some, "tensors": len(self.evidence), "worst": self.worst}
        figures |= {EVIDENT: dict(sorted(self.evidence.items()))} if self.subject.is_part else {}
        counted = {kind: counts.tolist() for kind, counts in self.ulps.items()}
        return {**figures, "ulps": counted} if counted else figures


def _specials(operator: Operator, scenario: Scenario, is_gradient: bool) -> str:
    """The rule for elements whose exact value is not finite."""
    if not is_gradient:
        return NOT_FINITE if operator.by_reference else SAME
    return ANYTHING if operator.by_reference or "missing" in dict(scenario.cotangents).values() else NOT_FINITE


_STRIDED_COTANGENTS = ("ones", "scaled", "rows", "columns", "inner", "transposed", "strided", "offset")


def _headline(name: str, got: Tensor, envelope: Envelope, found: Comparison) -> str:
    """«bias was 0.5 at (3,), but should be 0.25 within 1e-7»: the worst element, both values, the allowance.

    An index or a truth value has no allowance, and a number of 8 bits has one where rounding changes it.
    """
    was, should = got.detach().cpu()[found.place].item(), envelope.exact[found.place].item()
    said = f"{name} was {shown(was)} at {found.place}, but should be {shown(should)}"
    if envelope.discrete:
        allowed = int(everywhere(envelope)[found.place])
        return f"{said} within {allowed}" if allowed else said
    worst = found.worst
    return f"{said} ({found.special or f'{worst.name} error {worst.values}'})"
