// Views of some properties: derivatives and parity, one row for each implementation and dtype. And the filter of pictures.
function summarized(cell, property) {
  if (!cell) return el("td", { "data-label": property }, el("span", { class: "muted" }, "no cell"));
  const figures = cell.figures;
  const forms = inForms(figures).map(([, some]) => some);
  const cases = forms.flatMap((some) => some.get("cases") || []);
  const notes = [...new Set(forms.map((some) => some.get("double backward")).filter((word) => typeof word === "string"))];
  if (cases.length) notes.push(plural(cases.length, "case"));
  if (figures.has("scenarios")) notes.push(plural(figures.get("scenarios"), "call"));
  if (cell.unasked.length) notes.push("not in " + plural(cell.unasked.length, "form"));
  return el("td", { "data-label": property }, el("a", { href: cell.link, class: "summarized", "aria-label": cell.name + ": " + cell.verdict }, glyph(cell.verdict, true), " ", notes.join(", ") || cell.verdict),
    cell.used === null ? null : gauge(cell.used));
}

function view(place, some, name) {
  const wanted = payload.views[name];
  const rows = [...grouped(some.filter((cell) => wanted.includes(cell.property)), (cell) => JSON.stringify([cell.operator, cell.backend, cell.device, cell.dtype])).values()];
  const ran = rows.filter((group) => group.some((cell) => cell.verdict !== "not-run"));
  const quiet = rows.length - ran.length;
  const body = el("tbody", {});
  const table = el("table", { class: "view" },
    el("thead", {}, el("tr", {}, ["implementation", "device", "dtype", ...wanted].map((title) => el("th", { scope: "col" }, title)))), body);
  const scroll = el("div", { class: "scroll" }, table);
  place.replaceChildren(ran.length ? scroll : empty());
  const build = (group) => el("tr", {}, el("th", { scope: "row" }, group[0].operator + " / " + group[0].backend), el("td", {}, group[0].device), el("td", {}, group[0].dtype),
    wanted.map((property) => summarized(group.find((cell) => cell.property === property), property)));
  const stop = chunked({ append: (row) => body.append(row), after: (button) => scroll.after(button) }, ran, build, 40);
  if (quiet) place.append(el("p", { class: "note" }, "Not run for " + plural(quiet, "combination") + " of implementation and dtype: see what was not tested."));
  return stop;
}

function pictures() {
  for (const figure of document.querySelectorAll("#accuracy figure, #speed figure")) {
    figure.hidden = ["operator", "device", "dtype"].some((axis) => filter[axis] && filter[axis] !== figure.dataset[axis]);
  }
}
