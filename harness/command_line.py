"""`python -m harness`: what is drawn from reports, their comparison, and compilation without a GPU."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from backends.base import CompiledOperator
from harness import build, device_checks, discovery, option_values, rocm, scaffold, schema, tables
from harness.bench import command as bench
from harness.bench import record
from harness.difference import difference
from harness.errors import HarnessError, Unavailable, UsageError
from harness.files import write_atomically
from harness.fuzzing import session as fuzzing
from harness.gate import command as gate
from harness.judge import FAIL, NO_EVIDENCE
from harness.merging import merge
from harness.options import Selection
from harness.rendering import badge, diff, junit, summary
from harness.report import Report, load, refuse_other_files


def _merged(arguments: argparse.Namespace) -> Report:
    return Report.merged([Report.read(path) for path in arguments.reports])


def _show(arguments: argparse.Namespace) -> int:
    """Draw a report; the exit code is 1 if a cell of the view failed or has no evidence."""
    report = _merged(arguments)
    if arguments.output:
        refuse_other_files("--output", arguments.output)
        report.write(arguments.output)
    if arguments.into:
        table = tables.markdown(report, arguments.view)
        write_atomically(
            arguments.into, tables.insert(table, arguments.into.read_text(encoding="utf-8"), str(arguments.reports[0]))
        )
    elif arguments.markdown:
        print(tables.markdown(report, arguments.view), end="")
    else:
        tables.print_report(report, tables.console(sys.stdout), arguments.view)
    bad = [cell for cell in tables.selected(report, arguments.view) if cell.verdict in (FAIL, NO_EVIDENCE)]
    return 1 if bad or not report.complete else 0


def _page(report: Report, bench: Path | None) -> str:
    from harness.rendering import html  # matplotlib takes a moment to load

    return html.page(report, record.read(bench, option="--bench") if bench else None)


def _draw(arguments: argparse.Namespace) -> int:
    """Draw a report and write it to a file or the standard output; whatever its verdicts, that is a success."""
    drawing: Callable[[Report, argparse.Namespace], str] = arguments.drawing
    text = drawing(_merged(arguments), arguments)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        write_atomically(arguments.output, text)
        print(f"{arguments.output}: {len(text.encode()):,} bytes", file=sys.stderr)
    return 0


def _merge(arguments: argparse.Namespace) -> int:
    """Join shards or runs; the exit code is 1 if a cell failed or has no evidence, or if cells are missing."""
    names = [str(path) for path in arguments.reports]
    if len(set(names)) < len(names):
        raise UsageError(
            f"{next(name for name in names if names.count(name) > 1)} is given twice; give each report once"
        )
    report = merge([(str(path), Report.read(path)) for path in arguments.reports], arguments.any_cpu)
    refuse_other_files("--output", arguments.output)
    report.write(arguments.output)
    missing = f", but {report.why_partial()}" if not report.complete else ""
    print(f"{arguments.output}: {len(report.cells)} cells of {len(names)} reports{missing}")
    return 0 if report.ok else 1


def _diff(arguments: argparse.Namespace) -> int:
    """Compare two reports; the exit code is 1 if anything is worse or gone."""
    found = difference(Report.read(arguments.before), Report.read(arguments.after))
    if arguments.markdown:
        print(diff.markdown(found), end="")
    else:
        diff.print_difference(found, tables.console(sys.stdout))
    return 1 if found.regressed else 0


def _validate(arguments: argparse.Namespace) -> int:
    """Hold files against the schema; the exit code is 1 if one of them is no report."""
    bad = False
    for path in arguments.reports:
        try:
            record = load(path)
        except HarnessError as error:
            wrong = [str(error)]
        else:
            wrong = [f"{path}: {problem}" for problem in schema.problems(record)]
        bad |= bool(wrong)
        for line in wrong[: arguments.limit]:
            print(line)
        if len(wrong) > arguments.limit:
            print(f"{path}: and {len(wrong) - arguments.limit} more")
        if not wrong:
            print(f"{path}: a report of version {record['schema']}, {len(record['cells'])} cells")
    return 1 if bad else 0


def _fuzz(arguments: argparse.Namespace) -> int:
    """Make hostile calls until the time is used; the exit code is 1 if one was answered as it should not be."""
    selection = Selection(
        operators=tuple(arguments.operator),
        backends=tuple(arguments.backend),
        devices=tuple(arguments.device),
        dtypes=tuple(arguments.dtype),
        candidates=tuple(arguments.candidate),
        sanitize=arguments.sanitize,
    )
    refuse_other_files("--output", arguments.output)
    report = fuzzing.run(selection, arguments.seconds, arguments.seed, arguments.folder)
    report.write(arguments.output)
    tables.print_report(report, tables.console(sys.stdout))
    print(f"\nreport: {arguments.output}")
    return 0 if report.ok else 1


def _compute_sanitizer(arguments: argparse.Namespace) -> int:
    """Run the kernels under compute-sanitizer; the exit code is 1 if a tool found something or came to no end."""
    selection = Selection(
        operators=tuple(arguments.operator), backends=tuple(arguments.backend), dtypes=tuple(arguments.dtype)
    )
    refuse_other_files("--output", arguments.output)
    report = device_checks.run(selection, arguments.tool or device_checks.TOOLS, arguments.jobs)
    report.write(arguments.output)
    tables.print_report(report, tables.console(sys.stdout))
    print(f"\nreport: {arguments.output}")
    return 0 if report.ok else 1


def _compile_cuda(arguments: argparse.Namespace) -> int:
    """Compile every CUDA source of every backend for the given architectures, with nvcc or with hipcc."""
    for name, found in discovery.all_backends().items():
        for operator in discovery.operators():
            implementation = found.implementation(operator)
            if isinstance(implementation, CompiledOperator) and implementation.has_cuda_sources:
                for line in arguments.compile(implementation, arguments.architectures):
                    print(f"{name}: {line}", flush=True)
    return 0


def _say(text: str) -> int:
    print(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def of_reports(name: str, meaning: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=meaning)
        command.add_argument("reports", type=Path, nargs="*", default=[Path("reports/conformance.json")])
        command.set_defaults(run=run)
        return command

    def drawn(name: str, meaning: str, drawing: Callable[[Report, argparse.Namespace], str]) -> argparse.ArgumentParser:
        command = of_reports(name, meaning, _draw)
        command.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of the standard output")
        command.set_defaults(drawing=drawing)
        return command

    show = of_reports("show", "draw reports, merged into one, as a table", _show)
    show.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the merged report too")
    show.add_argument("--view", choices=sorted(tables.VIEWS), default="conformance")
    show.add_argument("--markdown", action="store_true", help="the table alone, as Markdown")
    show.add_argument(
        "--into", type=Path, metavar="FILE", help="put the Markdown between `<!-- REPORT -->` and `<!-- end -->`"
    )
    page = drawn(
        "html", "one HTML file with everything, for a browser", lambda report, given: _page(report, given.bench)
    )
    page.add_argument("--bench", type=Path, metavar="FILE", help="a bench record: its speed is drawn too")
    drawn("markdown", "a summary for a pull request or a step summary", lambda report, _: summary.markdown(report))
    drawn("junit", "JUnit XML for a CI system", lambda report, _: junit.junit(report))
    drawn("badge", "for an endpoint badge of shields.io", lambda report, _: json.dumps(badge.badge(report)) + "\n")

    merged = commands.add_parser("merge", help="join the reports of shards, or of several runs, into one")
    merged.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    merged.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the joined report goes")
    merged.add_argument("--any-cpu", action="store_true", help="shards may be of machines with different processors")
    merged.set_defaults(run=_merge)

    compared = commands.add_parser("diff", help="what got better, worse, appeared or vanished from A to B")
    compared.add_argument("before", type=Path, metavar="A.json")
    compared.add_argument("after", type=Path, metavar="B.json")
    compared.add_argument("--markdown", action="store_true", help="for a pull request, instead of tables")
    compared.set_defaults(run=_diff)

    validate = of_reports("validate", "hold files against the schema of reports", _validate)
    validate.add_argument("--limit", type=int, default=20, metavar="N", help="problems to tell of each file")

    # Named for `--help` alone: `harness.__main__` hands it to pytest before this is imported.
    commands.add_parser("judge", help="judge operators and backends of any package; options are those of pytest")

    bench.add(commands)
    gate.add(commands)

    fuzz = commands.add_parser(
        "fuzz", help="pass what nobody should pass to compiled backends, in processes of their own"
    )
    for name in ("operator", "backend", "device", "dtype", "candidate"):
        fuzz.add_argument(f"--{name}", action="append", default=[], metavar=name.upper(), help="as for judge")
    fuzz.add_argument("--seconds", type=option_values.seconds, default=600.0, metavar="S", help="of the whole session")
    fuzz.add_argument("--seed", type=option_values.whole(0), default=secrets.randbits(31), metavar="N")
    fuzz.add_argument("--sanitize", action="store_true", help="build with AddressSanitizer and UBSan (`nox -s fuzz`)")
    fuzz.add_argument("--folder", type=Path, metavar="FOLDER", help="where what failed is kept, to be tried first")
    fuzz.add_argument("-o", "--output", type=Path, default=Path("reports/fuzz.json"), metavar="FILE")
    fuzz.set_defaults(run=_fuzz)

    checks = commands.add_parser("compute-sanitizer", help="run the CUDA kernels under compute-sanitizer; needs a GPU")
    for name in ("operator", "backend", "dtype"):
        checks.add_argument(f"--{name}", action="append", default=[], metavar=name.upper(), help="as for judge")
    checks.add_argument("--tool", action="append", default=[], choices=device_checks.TOOLS, help="default: all four")
    checks.add_argument("--jobs", type=option_values.whole(1), default=1, metavar="N", help="how many at a time")
    checks.add_argument("-o", "--output", type=Path, default=Path("reports/compute-sanitizer.json"), metavar="FILE")
    checks.set_defaults(run=_compute_sanitizer)

    start = commands.add_parser("new-operator", help="write a package with a contract and a backend that run")
    start.add_argument("name", metavar="NAME")
    start.set_defaults(run=lambda given: _say(scaffold.new_operator(given.name, given.into)))
    copied = commands.add_parser("new-backend", help="copy a backend, to be changed")
    copied.add_argument("name", metavar="NAME")
    copied.add_argument("--like", default="python-autograd", metavar="BACKEND", help="default: python-autograd")
    copied.set_defaults(run=lambda given: _say(scaffold.new_backend(given.name, given.like, given.into)))
    for command in (start, copied):
        command.add_argument("--into", type=Path, default=Path(), metavar="FOLDER", help="default: the present one")

    compiled = commands.add_parser("compile-cuda", help="compile the CUDA sources with nvcc; needs no GPU")
    compiled.add_argument("architectures", nargs="*", default=["80", "90", "100"])
    compiled.set_defaults(run=_compile_cuda, compile=build.compile_for_architectures)

    translated = commands.add_parser("compile-rocm", help="translate and compile them with hipcc; needs no AMD GPU")
    translated.add_argument("architectures", nargs="*", default=list(rocm.ARCHITECTURES))
    translated.set_defaults(run=_compile_cuda, compile=rocm.compile_for_architectures)
    return parser


def main() -> int:
    """Parse the command line; errors are one sentence and exit code 2."""
    arguments = _parser().parse_args()
    try:
        result: int = arguments.run(arguments)
    except Unavailable as error:
        print(f"not run: {error}", file=sys.stderr)
        return 3
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return result


if __name__ == "__main__":
    sys.exit(main())
