// When sections are drawn, and what an address opens.
let stopDerivatives = () => {}, stopParity = () => {};
const DRAWN = {
  failures,
  support,
  matrix,
  untested,
  derivatives: (place, some) => { stopDerivatives(); stopDerivatives = view(place, some, "gradcheck"); },
  parity: (place, some) => { stopParity(); stopParity = view(place, some, "parity"); },
  cells: list,
};

// A section is drawn when it is almost in view, and again after the filter has changed.
const near = new Set(), stale = new Set(Object.keys(DRAWN));
function draw(id) {
  if (!stale.delete(id)) return;
  DRAWN[id](byId(id).querySelector(".body"), chosen());
}
const approaching = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) { near.add(one.target.id); draw(one.target.id); } else near.delete(one.target.id);
  }
}, { rootMargin: "600px" });

listeners.push(() => {
  for (const id of Object.keys(DRAWN)) { stale.add(id); if (near.has(id)) draw(id); }
  pictures();
});

// An address of an unknown cell shows a message.
function follow() {
  const hash = location.hash;
  const dialog = byId("evidence");
  if (hash.startsWith("#?")) {
    fromAddress(hash);
    if (dialog.open) dialog.close();
    show();
    arrive("cells");
  } else if (hash.split("/").length === AXES.length) {
    const cell = byLink.get(normal(hash));
    if (cell) open(cell);
    else say("This report has no cell " + decode(hash.slice(1)));
  } else {
    if (dialog.open) dialog.close();
    arrive(hash.slice(1));
  }
}

// Sections above the target are drawn first: drawn later, they would move it.
function arrive(id) {
  const target = byId(id);
  if (!target || target.tagName !== "SECTION") return;
  for (const one of Object.keys(DRAWN)) {
    if (target === byId(one) || target.compareDocumentPosition(byId(one)) & Node.DOCUMENT_POSITION_PRECEDING) draw(one);
  }
  target.scrollIntoView();
}

// A browser itself would scroll first, to where the section is before those above it are drawn.
function clicked(event) {
  const hash = event.target.closest("a")?.getAttribute("href") ?? "";
  if (!hash.startsWith("#") || byId(hash.slice(1))?.tagName !== "SECTION") return;
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (hash !== location.hash) history.pushState(null, "", hash);
  follow();
}

// Browsers differ in which characters of an address they encode.
function normal(hash) {
  return "#" + hash.slice(1).split("/").map((part) => encodeURIComponent(decode(part))).join("/");
}

// The event comes late: the address may already be that of the next cell.
function closed() {
  const dialog = byId("evidence");
  if (!dialog.open && normal(location.hash) === dialog.dataset.link) history.replaceState(null, "", address());
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const THEMES = ["auto", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = { auto: "◐", light: "☀", dark: "☾" }[name];
  byId("theme").title = "Colours: " + name;
}

function remembered(name) {
  try {
    if (name) localStorage.setItem("theme", name);
    return localStorage.getItem("theme");
  } catch { return name; }
}

controls();
theme(THEMES.includes(remembered()) ? remembered() : "auto");
byId("theme").addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  remembered(next);
  theme(next);
});
byId("evidence").addEventListener("close", closed);
byId("evidence").addEventListener("click", (event) => { if (event.target === byId("evidence")) byId("evidence").close(); });
addEventListener("hashchange", follow);
document.addEventListener("click", clicked);
addEventListener("beforeprint", () => {
  for (const id of Object.keys(DRAWN)) draw(id);
  for (const button of document.querySelectorAll("button.more")) button.forPaper();
  for (const fold of document.querySelectorAll("details.operator, details.again, details.form, #support details")) fold.open = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea, dialog")) return;
  event.preventDefault();
  byId("text").focus();
});
if (location.hash.startsWith("#?")) fromAddress(location.hash);
show();
for (const id of Object.keys(DRAWN)) approaching.observe(byId(id));
if (location.hash) follow();
