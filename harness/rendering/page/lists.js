// Lists that may be long: failures with their evidence, what was not tested, and every cell.
const COLUMNS = ["verdict", ...AXES, "used", "seconds"];
let stopFailures = () => {}, stopSupport = () => {}, stopUntested = () => {}, stopCells = () => {};

// Failures of the required levels, each cause once: payload.causes has the places of its cells.
function failures(place, some) {
  stopFailures();
  const kept = new Set(some.map((cell) => cell.number));
  const groups = payload.causes.map((numbers) => numbers.filter((number) => kept.has(number)).map((number) => cells[number])).filter((group) => group.length);
  const list = el("div", { class: "cards one" });
  place.replaceChildren(groups.length ? list : empty());
  stopFailures = chunked(list, groups, cause, 8);
}

function cause([first, ...rest], number) {
  const card = evidence(first, "h3", number > 0);
  if (rest.length) card.append(el("div", { class: "same" }, el("h4", {}, "For the same reason in " + plural(rest.length, "more cell")), links(rest)));
  return card;
}

// `sizes: f32 f64`, with a link to each cell.
function links(some) {
  return el("ul", { class: "alike" }, [...grouped(some, (cell) => cell.property)].map(([property, few]) =>
    el("li", {}, property + ": ", few.map((cell) => [el("a", { href: cell.link, "aria-label": cell.name + ": " + cell.verdict }, short(cell.dtype)), " "]).flat())));
}

// What the levels above the required one ask for and a function lacks, one card a property.
function support(place, some) {
  stopSupport();
  const lacking = some.filter((cell) => !isRequired(cell) && ["fail", "no-evidence", "declared"].includes(cell.verdict));
  const groups = [...grouped(lacking, (cell) => JSON.stringify([cell.operator, cell.backend, cell.property])).values()];
  const list = el("div", { class: "cards" });
  place.replaceChildren(groups.length ? list : empty());
  stopSupport = chunked(list, groups, (group) => el("div", { class: "card gap declared" },
    el("h3", {}, glyph("declared", true), group[0].property, el("span", { class: "count" }, "level " + levelOf(group[0]))),
    payload.claims[group[0].property] ? el("p", { class: "muted" }, payload.claims[group[0].property]) : null,
    el("p", { class: "reason" }, group[0].headline),
    el("p", { class: "muted" }, [group[0].operator, group[0].backend].join(" / ")), links(group)), 12);
}

// Untested cells, grouped by reason, the largest group first; then forms that passing cells did not test.
function untested(place, some) {
  stopUntested();
  const open = some.filter((cell) => payload.untested.includes(cell.verdict));
  const gaps = [...grouped(open, (cell) => cell.verdict + "\n" + cell.reason).values()].map((group) => ({ group, verdict: group[0].verdict, reason: group[0].headline, form: "" }));
  gaps.sort((a, b) => payload.untested.indexOf(a.verdict) - payload.untested.indexOf(b.verdict) || b.group.length - a.group.length);
  const left = some.flatMap((cell) => cell.unasked.map(([form, reason]) => ({ cell, form, reason })));
  for (const parts of grouped(left, ({ form, reason }) => form + "\n" + reason).values()) {
    gaps.push({ group: parts.map(({ cell }) => cell), verdict: "not-run", reason: parts[0].reason, form: parts[0].form });
  }
  const list = el("div", { class: "cards" });
  place.replaceChildren(gaps.length ? list : el("p", { class: "note" }, "Every cell of this filter was tested."));
  stopUntested = chunked(list, gaps, card, 12);
}

function card({ group, verdict, reason, form }) {
  const link = form ? { text: searchable(form) } : { verdict, text: searchable(reason) };
  return el("div", { class: "card gap " + verdict },
    el("h3", {}, glyph(verdict, true), form ? "a form left out" : verdict, el("span", { class: "count" }, plural(group.length, "cell"))),
    el("p", { class: "reason" }, (form ? form + ": " : "") + reason),
    el("dl", {}, ["operator", "property", "backend", "device", "dtype"].map((axis) => term(axis, distinct(group, axis).join(", ")))),
    el("a", { href: linkTo({ ...link, sort: "property" }) }, "Show them"));
}

// The first words of a reason, as text for the search: they are enough to find all cells with it.
const searchable = (reason) => reason.split(/\s+/).slice(0, 12).join(" ");

function sorted(some) {
  const name = filter.sort;
  if (!COLUMNS.includes(name)) return some;
  const value = (cell) => {
    if (name === "verdict") return payload.verdicts.indexOf(cell.verdict);
    if (AXES.includes(name)) return payload.axes[name].indexOf(cell[name]);
    return cell[name] ?? -1;
  };
  const sign = filter.down ? -1 : 1;
  return [...some].sort((a, b) => sign * (value(a) - value(b)) || a.number - b.number);
}

function list(place, some) {
  stopCells();
  if (!some.length) return place.replaceChildren(empty());
  const head = COLUMNS.map((name) => el("th", { scope: "col", "aria-sort": filter.sort === name ? (filter.down ? "descending" : "ascending") : null },
    el("button", { type: "button", onclick: () => choose(order(name)) }, { used: "allowance used", seconds: "time" }[name] || name)));
  const body = el("tbody", { onkeydown: along });
  const table = el("table", { class: "list" }, el("thead", {}, el("tr", {}, head, el("th", { scope: "col" }, "reason"))), body);
  const scroll = el("div", { class: "scroll" }, table);
  place.replaceChildren(scroll);
  // The button comes after the table, not into it.
  stopCells = chunked({ append: (row) => body.append(row), after: (button) => scroll.after(button) }, sorted(some), row, 60);
}

// The sort order after a click: ascending first, but descending for numbers; then reversed; then unsorted.
function order(name) {
  const downFirst = name === "used" || name === "seconds";
  if (filter.sort !== name) return { sort: name, down: downFirst };
  return filter.down === downFirst ? { sort: name, down: !downFirst } : { sort: "", down: false };
}

function row(cell, number) {
  const link = el("a", { href: cell.link, tabindex: number ? "-1" : "0", "aria-label": cell.name + ": " + cell.verdict }, glyph(cell.verdict, true), cell.verdict);
  return el("tr", { onclick: (event) => { if (!event.target.closest("a")) location.hash = cell.link; } },
    el("td", { class: "verdict" }, link), AXES.map((axis) => el("td", { class: axis }, cell[axis])),
    el("td", { class: "used" }, gauge(cell.used)), el("td", { class: "seconds" }, seconds(cell.seconds)),
    el("td", { class: "why" }, cell.headline));
}

function along(event) {
  const here = event.target.closest("tr");
  const to = { ArrowDown: here?.nextElementSibling, ArrowUp: here?.previousElementSibling }[event.key];
  if (!to || !event.target.matches("a")) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  const link = to.querySelector("a");
  link.tabIndex = 0;
  link.focus();
}
