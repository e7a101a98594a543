// The matrices: operator by backend, and inside an operator property by backend. A mark is a verdict of a dtype.
function overview(some) {
  const backends = distinct(some, "backend");
  const rows = [...grouped(some, (cell) => cell.operator)].map(([operator, here]) => el("tr", {},
    el("th", { scope: "row" }, operator),
    backends.map((backend) => el("td", { "data-label": backend }, tile(here.filter((cell) => cell.backend === backend))))));
  return el("div", { class: "scroll" }, el("table", { class: "overview" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "operator"), backends.map((backend) => el("th", { scope: "col" }, backend)))),
    el("tbody", {}, rows)));
}

function tile(some) {
  if (!some.length) return el("span", { class: "muted" }, "no cell");
  const devices = [...grouped(some, (cell) => cell.device)].map(([device, here]) => el("div", { class: "facet" },
    el("span", { class: "device" }, device),
    el("span", { class: "dtypes" }, [...grouped(here, (cell) => cell.dtype)].map(([dtype, few]) => {
      const { operator, backend } = few[0];
      return el("a", { href: linkTo({ operator, backend, device, dtype }), title: dtype, "aria-label": [operator, backend, device, dtype, worst(few)].join(", ") },
        glyph(worst(few), true), el("small", {}, short(dtype)));
    }))));
  return el("div", { class: "tile" }, devices, proportions(some));
}

// `float32` becomes `f32`, so that four dtypes fit in a tile.
const short = (dtype) => dtype.replace(/^bfloat/, "bf").replace(/^float/, "f");

function proportions(some) {
  const bar = el("div", { class: "proportions", "aria-hidden": "true" });
  for (const verdict of MARKS) {
    const count = some.filter((cell) => cell.verdict === verdict).length;
    if (!count) continue;
    const part = el("span", { class: verdict });
    part.style.flexGrow = count;
    bar.append(part);
  }
  return el("div", {}, bar, tally(some));
}

function properties(operator, some) {
  const columns = [...grouped(some, (cell) => JSON.stringify([cell.backend, cell.device])).keys()].map((key) => JSON.parse(key));
  const slots = grouped(some, (cell) => JSON.stringify([cell.property, cell.backend, cell.device]));
  const head = el("tr", {}, el("th", { scope: "col" }, "property"), columns.map(([backend, device]) => el("th", { scope: "col" }, backend, el("small", {}, device))));
  const rows = distinct(some, "property").map((property) => el("tr", {},
    el("th", { scope: "row" }, property, payload.claims[property] ? el("small", {}, payload.claims[property]) : null),
    columns.map(([backend, device]) => el("td", {}, (slots.get(JSON.stringify([property, backend, device])) || []).map(mark)))));
  return el("div", { class: "scroll" }, el("table", { class: "properties", onkeydown: walk, "aria-label": "Properties of " + operator },
    el("thead", {}, head), el("tbody", {}, rows)));
}

function mark(cell) {
  return el("a", { class: "mark", href: cell.link, tabindex: "-1", title: cell.dtype + ": " + cell.verdict, "aria-label": cell.name + ": " + cell.verdict },
    glyph(cell.verdict, true), el("small", {}, short(cell.dtype)));
}

// The tab key stops once in a matrix; the arrow keys move between its marks.
function walk(event) {
  const from = event.target.closest("a.mark");
  if (!from || !event.key.startsWith("Arrow")) return;
  const row = from.closest("tr");
  const inRow = [...row.querySelectorAll("a.mark")];
  let to = null;
  if (event.key === "ArrowRight") to = inRow[inRow.indexOf(from) + 1];
  else if (event.key === "ArrowLeft") to = inRow[inRow.indexOf(from) - 1];
  else {
    const column = from.closest("td").cellIndex;
    const place = [...from.closest("td").children].indexOf(from);
    for (let next = row; (next = event.key === "ArrowDown" ? next.nextElementSibling : next.previousElementSibling) && !to;) {
      const there = next.cells[column].querySelectorAll("a.mark");
      to = there[Math.min(place, there.length - 1)];
    }
  }
  event.preventDefault();
  if (!to) return;
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

function matrix(place, some) {
  place.replaceChildren(some.length ? overview(some) : empty());
  [...grouped(some, (cell) => cell.operator)].forEach(([operator, here], number) => {
    const fold = el("details", { class: "operator" }, el("summary", {}, el("h3", {}, operator), tally(here)));
    const fill = () => {
      if (!fold.open || fold.querySelector("table")) return;
      fold.append(properties(operator, here));
      const first = fold.querySelector("a.mark");
      if (first) first.tabIndex = 0;
    };
    fold.addEventListener("toggle", fill);
    fold.open = number === 0 && here.length <= 3000;
    fill(); // the event comes later, and would move what is below
    place.append(fold);
  });
}

const empty = () => el("p", { class: "note" }, "No cell matches the filter.");
