// The report's cells. The page carries them as JSON, compressed with gzip, in base64: harness/rendering/payload.py.
const AXES = ["operator", "backend", "device", "dtype", "property"];
const MARKS = ["pass", "fail", "no-evidence", "declared", "not-run"];

async function decompressed(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text());
}
const payload = await decompressed(document.getElementById("payload").textContent.trim());

// Objects become Maps: a candidate may have chosen their names, and `__proto__` does not work as a name of an object.
function mapped(value) {
  if (Array.isArray(value)) return value.map(mapped);
  if (value === null || typeof value !== "object") return value;
  return new Map(Object.entries(value).map(([name, part]) => [name, mapped(part)]));
}

// Figures are converted only when they are shown: most never are.
class Cell {
  constructor(raw, number) {
    this.raw = raw;
    this.number = number;
    for (const axis of AXES) this[axis] = raw[axis];
    this.verdict = raw.verdict;
    this.reason = raw.reason;
    this.seconds = raw.seconds;
    this.used = raw.used;
  }
  get headline() { return this.reason.split("\n", 1)[0]; }
  get figures() { return this.looked ??= mapped(this.raw.figures); }
  get link() { return linkOf(this); }
  get name() { return AXES.map((axis) => this[axis]).join(" / "); }
  // Forms of the operator that a passing cell did not test, with the reasons.
  get unasked() {
    const found = this.raw.figures["not asked of"];
    return found !== null && typeof found === "object" ? Object.entries(found) : [];
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

const cells = payload.cells.map((raw, number) => new Cell(raw, number));
const byLink = new Map(cells.map((cell) => [cell.link, cell]));

// The level at which a cell counts, and whether it must hold: harness/report/levels.py.
const levelOf = (cell) => (cell.verdict === "fail" && cell.raw.level) || payload.levels[cell.property] || "production";
const isRequired = (cell) => payload.required.includes(levelOf(cell));

// The verdict of several cells, as in harness.rendering.tables.worst: payload.verdicts are sorted, worst first.
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
