// A cell's outputs below the printed ones, in markup that the book's style sheets know. Each says
// which code it is of, when that is not the code as it stands now.
import { make } from "./editor.js";
import { bars, cellBox, cellOf, isStale, NAME, page, resultOf, textOf } from "./page.js";
import { offerActions } from "./panel.js";

const PRINTED = ":scope > .cell_output:not(.run-output)";
const BOOKS = "Printed in the book, from its own code";
const RESULTS = `dpnotes-results/${NAME}`;
let drawn = Date.now(); // counts figures: kept ones have lower numbers

const KINDS = {
  text(box, { data, of }) {
    box.className = `output text_plain ${of || ""}`;
    box.append(make("pre", {}, data));
  },
  html(box, { data }) {
    box.className = "output text_html";
    box.innerHTML = data;
    for (const head of box.querySelectorAll("thead th")) {
      if (!head.textContent.trim()) head.replaceWith(document.createElement("td"));
    }
  },
  svg(box, { data }) {
    box.className = "output text_html";
    const mark = `run${++drawn}-`; // ids must differ from those of the printed figure
    box.innerHTML = data.replace(/(\bid="|href="#|url\(#)/g, `$1${mark}`);
  },
  error(box, { data, name, message }) {
    box.className = "output run-traceback";
    const says = [make("b", {}, name), message ? `: ${message}` : ""];
    box.append(make("p", { className: "run-error" }, ...says), make("pre", {}, data.trimEnd()));
  },
};

function outputBox(bar) {
  const there = resultOf(bar);
  if (there) return there;
  const label = `Output of your run of cell ${cellOf(bar).number}`;
  const made = make("div", { className: "cell_output run-output", aria: { role: "group", label } });
  bar.after(made);
  return made;
}

const soon = new WeakMap(); // what a box will say of the next result; until that comes it shows the last

/** A run begins; `says` is the line above what it will show. */
export function begin(bar, says) {
  const box = outputBox(bar);
  soon.set(box, says);
  if (!box.hasChildNodes()) clear(box);
}

/** Of the result before nothing is left when the next one comes: the page does not jump between. */
function clear(box) {
  if (!soon.has(box)) return dropEarly(box);
  box.dataset.says = soon.get(box);
  soon.delete(box);
  box.replaceChildren(make("p", { className: "run-label" }, box.dataset.says));
  box.classList.remove("old");
}

export function show(bar, output) {
  const box = resultOf(bar);
  clear(box);
  const last = box.lastElementChild;
  if (output.type === "text" && last.matches(`.text_plain.${output.of || "none"}`)) {
    const text = last.firstElementChild.textContent + output.data;
    last.firstElementChild.textContent = text.replace(/[^\n]*\r(?=[^\r\n])/g, "");
    return;
  }
  const made = make("div");
  KINDS[output.type](made, output);
  made.classList.toggle("early", output.early === true);
  box.append(made);
}

const dropEarly = (box) => box.querySelector(".early")?.remove();

/** The cell has ended: nothing more comes. */
export function finish(bar) {
  clear(resultOf(bar));
  globalThis.watchScrolling(resultOf(bar));
}

export function markResults() {
  let edited = false; // is this cell, or one above it, another one than in the book?
  let old = 0;
  for (const [place, cell] of page.cells.entries()) {
    edited ||= textOf(cell) !== cell.source;
    const box = cell.bar && resultOf(cell.bar);
    if (box) {
      const isOld = isStale(place);
      const ended = cell.generation !== page.generation;
      const why = ended ? "its variables are gone" : "the code here or above is another one now";
      old += isOld && !ended;
      box.classList.toggle("old", isOld);
      box.firstElementChild.textContent = box.dataset.says + (isOld ? ` (old: ${why})` : "");
    }
    for (const printed of cell.bar ? cellBox(cell.bar).querySelectorAll(PRINTED) : []) {
      const there = printed.querySelector(":scope > .run-label");
      if (edited && !there) printed.prepend(make("p", { className: "run-label" }, BOOKS));
      else if (!edited) there?.remove();
    }
  }
  offerActions({ old, edited });
}

/** What this tab showed on this page before: {mark of a cell: {says, html}}. */
export function shownBefore() {
  try {
    return JSON.parse(sessionStorage.getItem(RESULTS)) ?? {};
  } catch {
    return {}; // a browser that keeps nothing
  }
}

export function showAgain(bar, { says, html }) {
  const box = outputBox(bar);
  box.dataset.says = says;
  box.innerHTML = html;
}

addEventListener("pagehide", () => {
  const shown = bars.filter(resultOf).map((bar) => {
    const { dataset, innerHTML } = resultOf(bar);
    return [bar.dataset.mark, { says: dataset.says, html: innerHTML }];
  });
  try {
    sessionStorage.setItem(RESULTS, JSON.stringify(Object.fromEntries(shown)));
  } catch {} // more than the browser keeps: they are lost with the page
});
