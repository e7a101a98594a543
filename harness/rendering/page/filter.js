// The filter, its controls, and the part of the address after `#`.
// `#lltm/aten-cpp/cpu/float32/forward-parity` is a cell, `#?backend=aten-cpp&verdict=fail` a filter.
const filter = { text: "", verdicts: new Set(), sort: "", down: false, ...Object.fromEntries(AXES.map((axis) => [axis, ""])) };
const listeners = [];
const byId = (id) => document.getElementById(id);

function matches(cell) {
  return AXES.every((axis) => !filter[axis] || cell[axis] === filter[axis])
    && (!filter.verdicts.size || filter.verdicts.has(cell.verdict))
    && filter.text.toLowerCase().split(/\s+/).every((word) => cell.text.includes(word));
}

function chosen() {
  return filter.text || filter.verdicts.size || AXES.some((axis) => filter[axis]) ? cells.filter(matches) : cells;
}

function address() {
  const parts = new URLSearchParams();
  for (const axis of AXES) if (filter[axis]) parts.set(axis, filter[axis]);
  if (filter.verdicts.size) parts.set("verdict", [...filter.verdicts].join(","));
  if (filter.text) parts.set("text", filter.text);
  if (filter.sort) parts.set("sort", (filter.down ? "-" : "") + filter.sort);
  const text = parts.toString();
  return text ? "#?" + text : "#";
}

function choose(changes) {
  Object.assign(filter, changes);
  history.replaceState(null, "", address());
  show();
}

// Update the controls and everything that depends on the filter.
function show() {
  const some = chosen();
  if (byId("text").value !== filter.text) byId("text").value = filter.text;
  for (const axis of AXES) byId("by-" + axis).value = filter[axis];
  for (const chip of byId("verdicts").children) chip.setAttribute("aria-pressed", String(filter.verdicts.has(chip.dataset.verdict)));
  const count = AXES.filter((axis) => filter[axis]).length;
  byId("more").querySelector("summary").textContent = count ? "Filter (" + count + ")" : "Filter";
  byId("shown").textContent = some.length === cells.length ? plural(cells.length, "cell") : some.length.toLocaleString("en") + " of " + plural(cells.length, "cell");
  byId("reset").hidden = some.length === cells.length && !filter.sort && !count;
  for (const listener of listeners) listener(some);
}

function fromAddress(hash) {
  const parts = new URLSearchParams(hash.slice(2));
  for (const axis of AXES) filter[axis] = payload.axes[axis].includes(parts.get(axis)) ? parts.get(axis) : "";
  filter.verdicts = new Set((parts.get("verdict") || "").split(",").filter((one) => MARKS.includes(one)));
  filter.text = parts.get("text") || "";
  const sort = parts.get("sort") || "";
  filter.down = sort.startsWith("-");
  filter.sort = filter.down ? sort.slice(1) : sort;
}

// A link to the given filter, independent of the present one.
function linkTo(parts) {
  return "#?" + new URLSearchParams(parts).toString();
}

function controls() {
  for (const axis of AXES) {
    const select = el("select", { id: "by-" + axis, onchange: (event) => choose({ [axis]: event.target.value }) },
      el("option", { value: "" }, "all"), payload.axes[axis].map((value) => el("option", { value }, value)));
    byId("selects").append(el("label", {}, axis, select));
  }
  for (const verdict of MARKS) {
    const count = cells.filter((cell) => cell.verdict === verdict).length;
    byId("verdicts").append(el("button", {
      type: "button", "data-verdict": verdict, "aria-pressed": "false", disabled: !count, "aria-label": verdict + ", " + count,
      onclick: () => {
        const verdicts = new Set(filter.verdicts);
        if (!verdicts.delete(verdict)) verdicts.add(verdict);
        choose({ verdicts });
      },
    }, glyph(verdict, true), el("span", { class: "word" }, verdict), el("span", { class: "count" }, count.toLocaleString("en"))));
  }
  let later;
  byId("text").addEventListener("input", (event) => {
    clearTimeout(later);
    later = setTimeout(() => choose({ text: event.target.value.trim() }), 120);
  });
  byId("reset").addEventListener("click", () => choose({ text: "", verdicts: new Set(), sort: "", down: false, ...Object.fromEntries(AXES.map((axis) => [axis, ""])) }));
  document.addEventListener("click", (event) => { if (!byId("more").contains(event.target)) byId("more").open = false; });
}
