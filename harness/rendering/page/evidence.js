// One cell with all its data: in the dialog that its address opens, and in the list of failures.
const SHOWN = new Set(["worst", "reproducer", "seen", "horizon", "forms", "ulps", "drift", "unreached"]);

function evidence(cell, heading, folded) {
  const figures = cell.figures;
  const [first, ...rest] = cell.reason.split("\n");
  const claim = payload.claims[cell.property];
  return el("article", { class: "cell " + cell.verdict, "data-link": cell.link },
    el("header", {}, glyph(cell.verdict),
      el(heading, {}, cell.property),
      el("span", { class: "verdict" }, cell.verdict),
      el("a", { class: "where", href: cell.link }, [cell.operator, cell.backend, cell.device, cell.dtype].join(" / "))),
    claim ? el("p", { class: "claim" }, claim) : null,
    first ? el("p", { class: "reason" }, first) : null,
    said(rest),
    because(cell),
    figures.has("seen") ? el("p", { class: "reason seen" }, el("span", { class: "muted" }, "Observed: "), String(figures.get("seen"))) : null,
    cell.used === null ? null : allowance(cell, figures.get("worst")),
    ...inForms(figures).map(([form, some]) => trajectory(form, some)),
    ...inForms(figures).map(([form, some]) => units(form, some.get("ulps"))),
    ...inForms(figures).map(([form, some]) => untouched(form, some.get("unreached"))),
    again(cell, figures.get("reproducer"), folded),
    numbers(figures, term("judged in", seconds(cell.seconds)), strength(cell.property)),
    ...inForms(figures).slice(1).map(([form, some]) => el("details", { class: "form", open: !folded },
      el("summary", {}, form), numbers(some, some.get("worst") instanceof Map ? term("worst", plain(some.get("worst"))) : null))));
}

// The lines after the first: a list if all begin with a dash, otherwise the text as it is.
function said(lines) {
  const text = lines.filter((line) => line.trim());
  if (!text.length) return null;
  if (text.every((line) => line.startsWith("  - "))) return el("ul", { class: "because" }, text.map((line) => el("li", {}, line.slice(4))));
  return el("pre", { class: "log", tabindex: "0" }, lines.join("\n"));
}

// The strength of the property in the mutation run that the report records: harness/report/suite.py.
function strength(property) {
  const found = payload.strength[property];
  if (!found) return null;
  const [noticed, asked, faults] = found;
  return term("mutation score", asked ? Math.floor(100 * noticed / asked) + "%: noticed " + noticed + " of the " + plural(asked, "mutant") + " that reached " + property : "no mutant reached " + property,
    faults ? "; the first to notice " + plural(faults, "hand-written fault") : "");
}

// If plain values are wrong, most other failures follow from that: the reader should fix it first.
const PLAIN = ["forward-parity", "vjp-parity"];
function because(cell) {
  if (cell.verdict !== "fail") return null;
  const before = PLAIN.slice(0, PLAIN.includes(cell.property) ? PLAIN.indexOf(cell.property) : undefined);
  const cause = before.map((property) => byLink.get(linkOf({ ...places(cell), property }))).find((other) => other && other.verdict === "fail");
  return cause ? el("p", { class: "because muted" }, "It may follow from ", el("a", { href: cause.link }, cause.property), ", which fails too: fix that first.") : null;
}

function allowance(cell, fit) {
  const left = cell.used > 1 ? (share(cell.used).endsWith("%") ? "of " : "") + "what rounding explains" : Math.round(100 * (1 - cell.used)) + "% left";
  const made = el("div", { class: "allowance" }, el("h4", {}, "Allowance"), gauge(cell.used), el("span", { class: "muted" }, left));
  if (!(fit instanceof Map) || !fit.has("tensor")) return made;
  return el("div", {}, made, el("dl", { class: "facts" },
    term("Tightest fit", String(fit.get("tensor")) + ", " + String(fit.get("statistic"))),
    fit.has("seen") ? term("Error", digits(fit.get("seen")) + ", allowed " + digits(fit.get("allowed"))) : null,
    term("Call", String(fit.get("scenario")))));
}

const term = (name, ...value) => el("div", {}, el("dt", {}, name), el("dd", {}, ...value));

function trajectory(form, figures) {
  const points = (figures.get("drift") ?? []).filter((point) => point instanceof Map);
  if (!points.length) return null;
  const horizon = figures.get("horizon");
  const rows = [...grouped(points, (point) => point.get("state"))].map(([state, some]) => el("tr", {},
    el("th", { scope: "row" }, state, horizon instanceof Map && horizon.has(state) ? el("small", {}, "horizon " + horizon.get(state)) : null),
    some.sort((a, b) => a.get("steps") - b.get("steps")).map((point) => el("td", { "data-label": point.get("steps") + " steps" }, gauge(Number(point.get("error")) / Number(point.get("allowed")))))));
  const steps = [...new Set(points.map((point) => Number(point.get("steps"))))].sort((a, b) => a - b);
  return el("div", { class: "scroll" }, el("table", { class: "drift" },
    el("thead", {}, el("tr", {}, el("th", {}, form || "state"), steps.map((count) => el("th", {}, "after " + count)))),
    el("tbody", {}, rows)));
}

// The number of elements for each error in units in the last place. Bins are those of harness/report/histogram.py.
const BINS = ["½", ...Array.from({ length: 11 }, (_, power) => String(2 ** power)), "more"];
function units(form, counted) {
  if (!(counted instanceof Map)) return null;
  const rows = [...counted].map(([kind, counts]) => el("tr", {}, el("th", { scope: "row" }, kind), counts.map((count) => el("td", {}, count ? count.toLocaleString("en") : "·"))));
  return el("div", {}, el("h4", {}, "Elements by error in units in the last place, at most" + (form ? ": " + form : "")),
    el("div", { class: "scroll" }, el("table", { class: "units" },
      el("thead", {}, el("tr", {}, el("th", {}, "ULP"), BINS.map((bin) => el("th", { scope: "col" }, bin)))), el("tbody", {}, rows))));
}

// Statements of the implementation that no call reached.
function untouched(form, lines) {
  const known = Array.isArray(lines) ? lines.filter((line) => line instanceof Map) : [];
  if (!known.length) return null;
  const rows = known.map((line) => el("tr", {},
    el("th", { scope: "row" }, line.get("file") + ":" + line.get("line")),
    el("td", {}, el("code", {}, String(line.get("text")))),
    el("td", {}, line.get("always") === true ? "true in every call" : "")));
  return el("div", {}, el("h4", {}, "Reached by no call" + (form ? ": " + form : "")),
    el("div", { class: "scroll" }, el("table", { class: "untouched" }, el("tbody", {}, rows))));
}

// How to reproduce the verdict: by the script, if there is one, and by the suite's own test.
function again(cell, reproducer, folded) {
  const known = payload.backends.includes(cell.backend);
  const spec = typeof reproducer === "string" && /candidate='([^']*)'/.exec(reproducer);
  const who = known ? "--backend " + quoted(cell.backend) : "--candidate " + quoted(spec ? spec[1] : cell.operator + "=FILE.py:" + cell.backend);
  const command = "pytest tests/conformance/test_properties.py::test_" + cell.property.replaceAll("-", "_") + " --operator " + quoted(cell.operator) + " " + who
    + " --device " + quoted(cell.device) + " --dtype " + quoted(cell.dtype);
  const commit = payload.commit ? " at commit " + payload.commit.split(/\s/).pop().slice(0, 12) : "";
  const path = spec || !known ? " Adapt the path of the candidate's file to your machine." : "";
  const alone = typeof reproducer === "string";
  return el("details", { class: "again", open: !folded },
    el("summary", {}, alone ? "Reproduce it" : "Judge it again"),
    el("p", { class: "muted" }, "In a checkout of the suite" + commit + ". " + (alone ? "The script, saved as reproduce.py, says what is wrong and exits with 1." : "") + path),
    alone ? code(reproducer, "Reproducer") : null, code(command, "Command"));
}

// Quoted for a shell: most names need no quotes.
const quoted = (text) => /^[\w./:=+@-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";

function numbers(figures, ...more) {
  const rows = [...figures].filter(([name]) => !SHOWN.has(name)).map(([name, value]) => term(name, plain(value)));
  return el("dl", { class: "facts numbers" }, rows, more);
}

function plain(value) {
  if (value instanceof Map) return el("ul", {}, [...value].map(([name, part]) => el("li", {}, name + ": ", plain(part))));
  if (Array.isArray(value)) return el("span", {}, value.map((part) => words(part)).join(", "));
  return el("span", {}, digits(value));
}

// The dialog steps through the cells of the filter, in the order of the list.
function open(cell) {
  const dialog = byId("evidence");
  dialog.dataset.link = cell.link;
  const order = sorted(chosen());
  const at = order.indexOf(cell);
  const step = (by) => el("button", {
    type: "button", "aria-label": by < 0 ? "Previous cell" : "Next cell", disabled: at < 0 || !order[at + by],
    onclick: () => { location.hash = order[at + by].link; },
  }, by < 0 ? "←" : "→");
  dialog.replaceChildren(
    el("div", { class: "tools" }, step(-1), el("span", { class: "muted" }, at < 0 ? "" : (at + 1).toLocaleString("en") + " of " + order.length.toLocaleString("en")), step(1),
      el("button", { type: "button", onclick: () => copy(location.href.split("#")[0] + cell.link, "Link") }, "Copy link"),
      el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "Close")),
    evidence(cell, "h2"));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  dialog.onkeydown = (event) => {
    if (event.target.closest("pre, input") || event.altKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, k: -1, j: 1 }[event.key];
    if (by && at >= 0 && order[at + by]) { event.preventDefault(); location.hash = order[at + by].link; }
  };
}
