// The cells, unpacked from the page's own JSON: harness/rendering/pack.py says how they are packed.
"use strict";
const payload = JSON.parse(document.getElementById("payload").textContent);
const AXES = ["operator", "backend", "device", "dtype", "property"];
const MARKS = ["pass", "fail", "no-evidence", "declared", "not-run"];

function unpack(value) {
  if (typeof value === "string") return payload.texts[parseInt(value, 36)];
  if (!Array.isArray(value)) return value;
  const [shape, ...parts] = value;
  if (shape < 0) return parts.map(unpack);
  return new Map(payload.shapes[shape].map((name, k) => [name, unpack(parts[k])]));
}

const LEAVING_OUT = new Set(payload.shapes.flatMap((names, shape) => names.includes("not asked of") ? [shape] : []));

// Figures are unpacked when somebody looks at them: most never are.
class Cell {
  constructor(number) {
    this.number = number;
    for (const axis of AXES) this[axis] = payload.axes[axis][payload.columns[axis][number]];
    this.verdict = payload.verdicts[payload.columns.verdict[number]];
    this.seconds = payload.columns.seconds[number];
    this.used = payload.columns.used[number];
  }
  get reason() { return payload.texts[payload.columns.reason[this.number]]; }
  get headline() { return this.reason.split("\n", 1)[0]; }
  get figures() { return unpack(payload.columns.figures[this.number]) || new Map(); }
  get link() { return linkOf(this); }
  get name() { return AXES.map((axis) => this[axis]).join(" / "); }
  // Forms of the operator in which a cell that passes was not asked, with the reasons.
  get unasked() {
    const packed = payload.columns.figures[this.number];
    return packed && LEAVING_OUT.has(packed[0]) ? [...this.figures.get("not asked of")] : [];
  }
  get text() {
    this.searched ??= [...AXES.map((axis) => this[axis]), this.verdict, this.reason, words(this.figures)].join("\n").toLowerCase();
    return this.searched;
  }
}

const linkOf = (where) => "#" + AXES.map((axis) => encodeURIComponent(where[axis])).join("/");
const places = (cell) => Object.fromEntries(AXES.map((axis) => [axis, cell[axis]]));

// The figures of a cell and of each form of its operator, with the form's title.
function inForms(figures) {
  const forms = figures.get("forms");
  const inner = forms instanceof Map ? [...forms].filter(([, some]) => some instanceof Map) : [];
  return [["", figures], ...inner];
}

function words(value) {
  if (value instanceof Map) return [...value].map(([name, part]) => name + " " + words(part)).join("\n");
  return Array.isArray(value) ? value.map(words).join("\n") : String(value);
}

const cells = payload.columns.verdict.map((_, number) => new Cell(number));
const byLink = new Map(cells.map((cell) => [cell.link, cell]));
const failureRank = new Map(payload.failures.map((number, rank) => [number, rank]));

// The verdict that stands for several, as harness.tables.worst has it: payload.verdicts are worst first.
function worst(some) {
  return payload.verdicts[Math.min(...some.map((cell) => payload.verdicts.indexOf(cell.verdict)))];
}

function grouped(some, key) {
  const found = new Map();
  for (const one of some) {
    const name = key(one);
    if (found.has(name)) found.get(name).push(one); else found.set(name, [one]);
  }
  return found;
}

const distinct = (some, axis) => payload.axes[axis].filter((value) => some.some((cell) => cell[axis] === value));
