"""The verdict in words: the sentence for one implementation, for a report, and for a badge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.rendering import sentence
from harness.report.cell import DECLARED, FAIL, NEEDLESS, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, PRODUCTION, PYTORCH, SAFE, VALUES
from harness.report.shards import RunPlan
from harness.report.suite import KnownProperty
from tests.meta.reports import ONE_EACH, WRONG, WRONG_GRADIENT, cell, h200, of, of_levels, row

DTYPES = ("float32", "float64", "float16", "bfloat16")
_RIGHT = (PASS, PASS, PASS)


def said(*cells: Cell, required: str = SAFE) -> str:
    """The sentence for a report of these cells."""
    return sentence.overall(of(*cells, required=required))


def test_a_right_function_is_told_so_and_what_it_could_support_too() -> None:
    """Seven of ten cells of a level above the required one hold."""
    cells = [row(name, dtype=dtype) for name in ONE_EACH[:3] for dtype in DTYPES]
    cells += [row("opcheck", FAIL if dtype == "float16" else PASS, dtype) for dtype in DTYPES]
    cells += [row("error-messages", FAIL if dtype in DTYPES[:2] else PASS, dtype) for dtype in DTYPES]
    cells += [row("compile", dtype=dtype) for dtype in DTYPES[:2]]
    assert said(*cells) == (
        "Values and gradients are right in float32, float64, float16 and bfloat16, and it is safe. "
        "It could also support: opcheck, error messages (7 of 10 at level pytorch)."
    )


def test_wrong_gradients_in_one_dtype_are_named_with_it() -> None:
    names = ("vjp-parity", "double-backward", "gradcheck", "recurrence")
    cells = [row(name, dtype=dtype) for name in ("forward-parity", *names) for dtype in DTYPES]
    cells += [row(name, dtype=dtype, device="cuda") for name in names[:1] for dtype in DTYPES]
    bad = [(name, "float16") for name in names[:3]]
    wrong = [
        replace(one, verdict=FAIL, reason=WRONG_GRADIENT)
        if (one.property, one.dtype) in bad and one.device == "cpu"
        else one
        for one in cells
    ]
    on_cpu = "Wrong: gradients are wrong in float16 on cpu (3 of 20 cells). Values are right."
    assert said(*wrong, required=GRADIENTS) == on_cpu
    alone = [one for one in wrong if one.device == "cpu"]
    assert said(*alone, required=GRADIENTS) == on_cpu.replace(" on cpu", "").replace("20", "16")


@pytest.mark.parametrize(
    ("verdicts", "required", "expected"),
    [
        (_RIGHT, SAFE, "Values and gradients are right in float32, and it is safe."),
        ((PASS,), VALUES, "Values are right in float32."),
        ((PASS,), SAFE, "Values are right in float32. Gradients and safety were not judged."),
        ((PASS, NOT_RUN, NOT_RUN), SAFE, "Values are right in float32. Gradients and safety were not judged."),
        ((NOT_RUN, PASS, PASS), SAFE, "Gradients are right in float32, and it is safe. Values were not judged."),
        ((NOT_RUN, NOT_RUN, PASS), SAFE, "It is safe. Values and gradients were not judged."),
        ((PASS, PASS, FAIL), SAFE, "Not safe: memory (1 of 1 cells). Values and gradients are right."),
        (
            (PASS, PASS, FAIL),
            GRADIENTS,
            "Values and gradients are right in float32. It could also support: memory (0 of 1 at level safe).",
        ),
        (
            (PASS, FAIL, PASS),
            SAFE,
            "Wrong: gradients are wrong in float32 (1 of 1 cells). Values are right, and it is safe.",
        ),
        (
            (FAIL, FAIL, PASS),
            SAFE,
            "Wrong: values are wrong in float32 (1 of 1 cells). Gradients were not judged apart. It is safe.",
        ),
        (
            (FAIL, PASS, PASS),
            SAFE,
            "Wrong: values are wrong in float32 (1 of 1 cells). Gradients are right, and it is safe.",
        ),
        (
            (FAIL, FAIL, FAIL),
            SAFE,
            "Wrong: values are wrong in float32 (1 of 1 cells). Gradients and safety were not judged apart.",
        ),
        (
            (*_RIGHT, PASS),
            SAFE,
            "Values and gradients are right in float32, and it is safe. It also holds at level pytorch (1 of 1).",
        ),
        (
            (*_RIGHT, PASS, PASS),
            PRODUCTION,
            "Values and gradients are right in float32, and it is safe. "
            "It also holds at levels pytorch (1 of 1) and production (1 of 1).",
        ),
        (
            (*_RIGHT, FAIL, FAIL),
            SAFE,
            "Values and gradients are right in float32, and it is safe. "
            "It could also support: opcheck (0 of 1 at level pytorch); record stream (0 of 1 at level production).",
        ),
        (
            (*_RIGHT, DECLARED, PASS),
            SAFE,
            "Values and gradients are right in float32, and it is safe. It also holds at level production (1 of 1). "
            "It could also support: opcheck (0 of 1 at level pytorch).",
        ),
        (
            (PASS, PASS, FAIL, FAIL),
            PYTORCH,
            "Not safe: memory (1 of 1 cells). Fails: opcheck (1 of 1 cells at level pytorch). "
            "Values and gradients are right.",
        ),
        (
            (PASS, PASS, DECLARED),
            SAFE,
            "Values and gradients are right in float32. Declared as not supported: memory (1 cell).",
        ),
        (
            (NO_EVIDENCE, PASS, PASS),
            SAFE,
            "Not known whether values are right: forward parity could not tell right from wrong (1 of 1 cells). "
            "Gradients are right, and it is safe.",
        ),
        (
            (PASS, PASS, NO_EVIDENCE),
            SAFE,
            "Not known whether it is safe: memory could not tell right from wrong (1 of 1 cells). "
            "Values and gradients are right.",
        ),
        ((NOT_RUN, NOT_RUN), SAFE, "Nothing was judged: why not-run."),
        ((DECLARED, DECLARED), SAFE, "Nothing was judged: why declared."),
        ((NOT_RUN, DECLARED, DECLARED), SAFE, "Nothing was judged: why declared (and 1 more reason)."),
        ((), SAFE, "Nothing was judged: no cell was selected."),
    ],
)
def test_the_sentence(verdicts: tuple[str, ...], required: str, expected: str) -> None:
    assert sentence.overall(of_levels(*verdicts, required=required)) == expected


def test_gradients_are_not_said_to_be_right_where_only_values_are() -> None:
    cells = [row("forward-parity", dtype=dtype) for dtype in DTYPES] + [row("vjp-parity"), row("memory")]
    assert said(*cells) == (
        "Values are right in float32, float64, float16 and bfloat16, gradients in float32, and it is safe."
    )


def test_failures_that_follow_are_not_counted_as_others() -> None:
    """Values are wrong in float16 alone: gradients fail there too, but in float64 for a reason of their own."""
    cells = [row("forward-parity", FAIL, "float16"), *(row("forward-parity", dtype=name) for name in DTYPES[:2])]
    cells += [row("vjp-parity", FAIL, "float16", WRONG_GRADIENT), row("vjp-parity")]
    cells += [row("gradcheck", FAIL, "float64", "gradcheck refused it")]
    assert said(*cells, required=GRADIENTS) == (
        "Wrong: values are wrong in float16 (1 of 3 cells) and gradients are wrong in float64 "
        "(1 of 3 cells: gradcheck)."
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (f"the second call: {WRONG}", "Gradients and safety were not judged apart."),
        (f"backward again: {WRONG_GRADIENT}", "Gradients and safety were not judged apart."),
        ("input was changed in place", "Gradients were not judged apart."),
    ],
)
def test_harm_is_told_beside_wrong_values_unless_it_compares_values(reason: str, expected: str) -> None:
    cells = (row("forward-parity", FAIL), row("vjp-parity", FAIL), row("memory", FAIL, reason=reason))
    safe = "" if "safety" in expected else "Not safe: memory (1 of 1 cells). "
    assert said(*cells) == f"Wrong: values are wrong in float32 (1 of 1 cells). {safe}{expected}"


def test_values_that_are_missing_are_not_called_wrong_and_explain_what_raises_the_same() -> None:
    error = "forward raised NotImplementedError: no kernel for 'CUDA'. This could be because [CPU]; it should return y"
    cells = [row(name, FAIL, reason=error) for name in ("forward-parity", "vjp-parity", "memory")]
    assert said(*cells) == (
        "Wrong: values are missing in float32, since forward raised NotImplementedError: no kernel for 'CUDA' "
        "(1 of 1 cells). Gradients and safety were not judged apart."
    )
    cells[0] = row("forward-parity", FAIL)
    assert said(*cells).startswith("Wrong: values are wrong in float32 (1 of 1 cells). Not safe: memory")


def test_what_compares_outputs_does_not_follow_from_wrong_gradients() -> None:
    gradient = row("vjp-parity", FAIL, reason=WRONG_GRADIENT)
    assert said(row("forward-parity"), gradient, row("memory", FAIL, reason=f"again: {WRONG}")) == (
        "Wrong: gradients are wrong in float32 (1 of 1 cells). Not safe: memory (1 of 1 cells). Values are right."
    )
    assert said(row("forward-parity"), gradient, row("memory", FAIL, reason=f"again: {WRONG_GRADIENT}")) == (
        "Wrong: gradients are wrong in float32 (1 of 1 cells). Safety was not judged apart. Values are right."
    )


def test_a_cell_that_fails_by_a_gradient_counts_for_the_values() -> None:
    wrong = replace(row("sizes", FAIL, reason=WRONG_GRADIENT), level=GRADIENTS)
    assert said(row("forward-parity"), row("vjp-parity"), wrong, required=GRADIENTS) == (
        "Wrong: gradients are wrong in float32 (1 of 2 cells: sizes). Values are right."
    )


def test_many_properties_are_counted_and_named_by_the_first() -> None:
    names = ("forward-parity", "sizes", "layouts")
    many = [row("forward-parity"), *(row(f"layouts-{number}", FAIL) for number in range(6))]
    shown = said(*many, required=VALUES)
    assert shown == (
        "Values are right in float32. It could also support: layouts 0, layouts 1, layouts 2, layouts 3 and 2 more "
        "(0 of 6 at level production)."
    ), "a property that the suite does not know counts at the last level"
    assert said(*(row(name, FAIL if name != "forward-parity" else PASS) for name in names), required=VALUES) == (
        "Wrong: values are wrong in float32 (2 of 3 cells: sizes, layouts)."
    ), "plain calls are right: which are not?"


def test_a_candidate_that_cannot_be_imported_is_not_called_wrong() -> None:
    report = of_levels(*_RIGHT, backend="other")
    broken = row("imports", FAIL, reason="k.py does not import: RuntimeError: no\n  File ...")
    suite = replace(report.suite, properties=(*report.suite.properties, KnownProperty("imports", "", level=VALUES)))
    alone = replace(report, cells=(broken,), suite=suite)
    assert sentence.outcome(alone) == (FAIL, "Nothing was judged: k.py does not import: RuntimeError: no.")
    assert sentence.short(alone) == "does not import"
    both = replace(alone, cells=(broken, *report.cells))
    assert sentence.overall(both) == (
        "Wrong: the import of lltm / mine. Values and gradients are right, and safety holds, in 1 of 2 implementations."
    )
    assert sentence.short(both) == "does not import in 1 of 2"


def test_a_partial_report_says_so_first() -> None:
    report = replace(of_levels(*_RIGHT), complete=False)
    assert sentence.overall(report) == (
        "Partial: the run did not finish. So far: Values and gradients are right in float32, and it is safe."
    )
    plan = RunPlan("", "", shards=3, begun=(1, 2), finished=(1, 2))
    missing = sentence.overall(replace(report, plan=plan))
    assert missing.startswith("Partial: shard 3 of 3 is missing. So far: Values")
    assert sentence.short(report) == "partial: the run did not finish"
    assert sentence.short(replace(of_levels(FAIL), complete=False)) == "values wrong", "it cannot become right"


def test_a_long_reason_is_cut_and_kept_as_it_is_otherwise() -> None:
    shown = said(cell(NOT_RUN, reason="x" * 10**7))
    assert shown == f"Nothing was judged: {'x' * 200}..."
    assert said(cell(NOT_RUN, reason="<b>\x1b[31m\nmore")) == "Nothing was judged: <b>\x1b[31m.", "plain text, one line"


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        (
            {"a": _RIGHT, "b": _RIGHT},
            "Values and gradients are right, and safety holds, in all 2 implementations.",
        ),
        (
            {"a": (*_RIGHT, PASS, PASS), "b": (*_RIGHT, PASS, PASS)},
            "Values and gradients are right, safety holds, and levels pytorch and production hold, "
            "in all 2 implementations.",
        ),
        (
            {"a": _RIGHT, "b": (FAIL, FAIL), "c": (PASS, PASS, FAIL)},
            "Wrong: values of lltm / b. Not safe: lltm / c. "
            "Values and gradients are right, and safety holds, in 1 of 3 implementations.",
        ),
        (
            {"a": (PASS, FAIL, FAIL), "b": (FAIL, PASS)},
            "Wrong: gradients of lltm / a and values of lltm / b.",
        ),
        (
            {"a": (PASS,), "b": (NOT_RUN,)},
            "Values are right in 1 of 2 implementations. 1 of 2 was not judged.",
        ),
        (
            {"a": (NO_EVIDENCE,), "b": (NOT_RUN,)},
            "Not known: lltm / a. 1 of 2 was not judged.",
        ),
        (
            dict.fromkeys("abcdef", (FAIL,)),
            "Wrong: values of lltm / a; values of lltm / b; values of lltm / c; values of lltm / d and 2 more.",
        ),
        (
            {"a": (NOT_RUN, NOT_RUN, NOT_RUN, PASS), "b": _RIGHT},
            "No failure at the required levels in all 2 implementations.",
        ),
    ],
)
def test_the_sentence_for_many(reports: dict[str, tuple[str, ...]], expected: str) -> None:
    cells = [one for name, verdicts in reports.items() for one in of_levels(*verdicts, backend=name).cells]
    assert said(*cells) == expected


def test_later_levels_of_many_are_told_apart() -> None:
    cells = [
        *of_levels(*_RIGHT, FAIL, backend="a", reason="refused").cells,
        *of_levels(PASS, FAIL, PASS, FAIL, backend="b", reason="refused").cells,
        *of_levels(*_RIGHT, PASS, backend="c").cells,
    ]
    assert said(*cells, required=PYTORCH) == (
        "Wrong: gradients of lltm / b. Fails at level pytorch: lltm / a. "
        "Values and gradients are right, safety holds, and level pytorch holds, in 1 of 3 implementations."
    )


def test_implementations_come_in_the_order_of_the_suite() -> None:
    report = of(cell(operator="other"), cell(operator="mlp"), cell(backend="python-autograd"), cell(backend="aten-cpp"))
    found = [(one.operator, one.backend) for one in sentence.implementations(report)]
    assert found == [("lltm", "aten-cpp"), ("lltm", "python-autograd"), ("mlp", "mine"), ("other", "mine")]


@pytest.mark.parametrize(
    ("verdicts", "required", "expected"),
    [
        (_RIGHT, SAFE, "values ✓ gradients ✓ safe ✓"),
        ((*_RIGHT, FAIL), SAFE, "values ✓ gradients ✓ safe ✓"),
        ((*_RIGHT, DECLARED, PASS), PRODUCTION, "values ✓ gradients ✓ safe ✓ pytorch d production ✓"),
        ((PASS,), SAFE, "values ✓"),
        ((PASS, FAIL, PASS), SAFE, "gradients wrong"),
        ((FAIL, FAIL, FAIL), SAFE, "values wrong"),
        ((PASS, PASS, FAIL, FAIL), PYTORCH, "not safe, pytorch fails"),
        ((PASS, NO_EVIDENCE), SAFE, "values ✓ gradients ?"),
        ((NOT_RUN,), SAFE, "nothing was judged"),
        ((DECLARED,), SAFE, "nothing was judged"),
        ((NOT_RUN, NOT_RUN, NOT_RUN, PASS), SAFE, "nothing was judged"),
        ((), SAFE, "nothing was judged"),
    ],
)
def test_a_few_words(verdicts: tuple[str, ...], required: str, expected: str) -> None:
    assert sentence.short(of_levels(*verdicts, required=required)) == expected


def test_a_few_words_for_many_implementations() -> None:
    cells = [*of_levels(*_RIGHT, backend="a").cells, *of_levels(PASS, FAIL, backend="b").cells]
    assert sentence.short(of(*cells, required=SAFE)) == "gradients wrong in 1 of 2"


def test_a_needless_declaration_is_told_as_one() -> None:
    """Nothing that the implementation computes is wrong."""
    needless = row("layouts", FAIL, level=PRODUCTION, figures={NEEDLESS: True}, backend="aten-cpp")
    right = of_levels(*_RIGHT, backend="aten-cpp").cells
    alone, other = of(*right, needless), of_levels(*_RIGHT, backend="python-autograd").cells
    assert sentence.overall(alone) == (
        "Declared not to hold, but it does: layouts. Values and gradients are right, and it is safe. "
        "Level pytorch was not judged."
    )
    assert sentence.overall(of(*right, needless, *other)) == (
        "Declared not to hold, but it does: layouts of lltm / aten-cpp. "
        "Values and gradients are right, and safety holds, in 1 of 2 implementations."
    )
    stranger = replace(needless, backend="mine")
    assert "Fails: layouts (1 of 1 cells at level production)." in sentence.overall(of(stranger))


def test_an_old_report_has_a_sentence() -> None:
    """Version 2 had no levels; everything was required."""
    report = h200()
    assert report.required == PRODUCTION
    assert sentence.overall(report) == (
        "Values and gradients are right, safety holds, and levels pytorch and production hold, "
        "in all 5 implementations."
    )
    first = sentence.implementations(report)[0]
    assert first.sentence == (
        "Values and gradients are right in float32, float64, float16 and bfloat16, and it is safe. "
        "Declared as not supported: functional transforms (1 cell). "
        "It also holds at levels pytorch (16 of 17) and production (8 of 8)."
    )


@pytest.mark.parametrize(
    ("verdicts", "required", "expected"),
    [
        (_RIGHT, SAFE, PASS),
        ((*_RIGHT, FAIL), SAFE, PASS),
        ((*_RIGHT, FAIL), PYTORCH, FAIL),
        ((PASS, NO_EVIDENCE), SAFE, NO_EVIDENCE),
        ((PASS, PASS, PASS, NO_EVIDENCE), SAFE, PASS),
        ((PASS, PASS, DECLARED), SAFE, DECLARED),
        ((DECLARED,), SAFE, NOT_RUN),
        ((NOT_RUN,), SAFE, NOT_RUN),
        ((NOT_RUN, NOT_RUN, NOT_RUN, PASS), SAFE, NOT_RUN),
        ((), SAFE, NOT_RUN),
    ],
)
def test_the_verdict_of_a_run(verdicts: tuple[str, ...], required: str, expected: str) -> None:
    report = of_levels(*verdicts, required=required)
    assert sentence.outcome(report) == (expected, sentence.overall(report))
    partial = replace(report, complete=False)
    assert sentence.outcome(partial)[0] == (FAIL if expected == FAIL else NO_EVIDENCE)
