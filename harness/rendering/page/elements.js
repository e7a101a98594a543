// Elements of the page. Text of a report becomes a text node or an attribute, never markup.
const SVG = "http://www.w3.org/2000/svg";

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

function glyph(verdict, hidden) {
  const drawn = document.createElementNS(SVG, "svg");
  drawn.setAttribute("class", "glyph " + verdict);
  if (hidden) drawn.setAttribute("aria-hidden", "true");
  else { drawn.setAttribute("role", "img"); drawn.setAttribute("aria-label", verdict); }
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", "#v-" + verdict);
  drawn.append(use);
  return drawn;
}

// `✓ 4 - 1`: the number of cells for each verdict.
function tally(some) {
  const made = el("span", { class: "tally" });
  for (const verdict of MARKS) {
    const count = some.filter((cell) => cell.verdict === verdict).length;
    if (count) made.append(el("span", { title: verdict }, glyph(verdict), " " + count));
  }
  return made;
}

const BEYOND = 1e300;
function share(used) {
  if (used >= BEYOND) return "beyond all bounds";
  return used < 9.995 ? Math.round(100 * used) + "%" : Number(used.toPrecision(3)).toLocaleString("en") + " times";
}

// A bar for the used part of the allowance. If more than all of it is used, the bar is full and crossed.
function gauge(used) {
  if (used === null) return el("span", { class: "muted" }, "–");
  const fill = el("span", { class: "fill" });
  fill.style.width = Math.min(100, 100 * used) + "%";
  return el("span", { class: "gauge" + (used > 1 ? " over" : ""), title: share(used) + " of the allowance used" },
    el("span", { class: "track" }, fill), el("span", { class: "number" }, share(used)));
}

const digits = (value) => typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(4))) : String(value);
const seconds = (value) => value >= 100 ? value.toFixed(0) + " s" : value >= 1 ? value.toFixed(1) + " s" : (1000 * value).toFixed(value < 0.01 ? 1 : 0) + " ms";

function say(words) {
  const place = document.getElementById("said");
  place.textContent = words;
  place.classList.add("shown");
  clearTimeout(say.later);
  say.later = setTimeout(() => place.classList.remove("shown"), 2500);
}

// Browsers allow the clipboard API on secure pages only; other pages use the older `execCommand`.
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = el("textarea", { class: "offscreen" });
    field.value = text;
    (document.querySelector("dialog[open]") || document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (!done) return say("This browser does not allow copying: select the text instead");
  }
  say(what + " copied");
}

function code(text, what) {
  return el("div", { class: "code" },
    el("div", { class: "head" }, el("h4", {}, what), el("button", { type: "button", class: "copy", "aria-label": "Copy: " + what, onclick: () => copy(text, what) }, "Copy")),
    el("pre", { tabindex: "0", "aria-label": what }, text));
}

// Items in batches: the first few appear when the end of the list comes into view, later ones on a click.
// Thousands of rows that nobody looks at would only make the page slow.
// An end above the window is not in view: a list that grew there would move what is being read.
const BY_ITSELF = 4;
function chunked(place, items, build, size) {
  let next = 0;
  const button = el("button", { type: "button", class: "more" });
  const bar = 1 + parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop); // and a rounded pixel
  // Observe the button again after each batch: if the end stays in view, the observer does not fire by itself.
  const watch = new IntersectionObserver((seen) => {
    if (!seen.at(-1).isIntersecting) return;
    watch.unobserve(button);
    more(size);
    if (next < Math.min(items.length, BY_ITSELF * size)) watch.observe(button);
  }, { rootMargin: `${-bar}px 0px 300px 0px` });
  function more(count) {
    const until = Math.min(items.length, next + count);
    for (; next < until; next++) place.append(build(items[next], next));
    if (next < items.length) button.textContent = "Show more: " + (items.length - next).toLocaleString("en") + " are left";
    else { watch.disconnect(); button.remove(); }
  }
  button.addEventListener("click", () => more(5 * size));
  button.forPaper = () => more(1000);
  more(size);
  if (next < items.length) { place.after(button); watch.observe(button); }
  return () => { watch.disconnect(); button.remove(); };
}

const plural = (count, one) => count.toLocaleString("en") + " " + one + (count === 1 ? "" : "s");
