// What the scripts of this page share: its cells, as the reader has them, and its Python.

export const NAME = decodeURIComponent(location.pathname)
  .replace(/.*\/(?=chapters\/)/, "")
  .replace(/\.html$/, "");
export const HOME = new URL("./", import.meta.url);
export const bars = [...document.querySelectorAll(".run-bar")];

// `cells`: all of the page in order, hidden ones too: {source, mark, imports, lacks, number, bar}.
// What has run has also `ran` (the text), `ok`, `when`, `changed` and `generation`.
// `python`: the module python.js, once asked for.
// `generation` of the variables: a stop or a reset begins a new one.
export const page = { cells: null, python: null, generation: 0 };

export const cellBox = (bar) => bar.parentElement;
export const button = (bar, what) => bar.querySelector(`[data-do="${what}"]`);
export const editorOf = (bar) => cellBox(bar).querySelector(".run-editor");
export const resultOf = (bar) => cellBox(bar).querySelector(":scope > .run-output");
export const cellOf = (bar) => page.cells[bar.dataset.cell];
export const textOf = (cell) =>
  cell.bar && editorOf(cell.bar) ? editorOf(cell.bar).value : cell.source;

export function note(bar, text, failed = false) {
  const place = bar.querySelector(".run-note");
  place.textContent = text;
  place.classList.toggle("failed", failed);
}

/** Load the cells and the script that runs Python; `follow` hears what Python does. */
export async function load(follow) {
  if (page.cells) return;
  const [answer, script] = await Promise.all([
    fetch(new URL(`cells/${NAME}.json`, HOME), { cache: "no-cache" }),
    import("./python.js"),
  ]);
  if (!answer.ok) throw new Error(`the cells of this page could not be loaded (${answer.status})`);
  const found = await answer.json();
  if (!bars.every((bar) => found[bar.dataset.cell]?.mark === bar.dataset.mark))
    throw new Error("the book has changed since this page was loaded; reload the page");
  page.cells = found;
  bars.forEach((bar) => (found[bar.dataset.cell].bar = bar));
  page.python = script;
  script.onState(follow);
}

// A cell must run (again) if its text is another one than the one that ran, or a cell above it is
// new or changed since: whether it ran in the meantime or was only edited. A cell that failed has
// run: it would fail again.
export function isStale(place) {
  const cell = page.cells[place];
  if (cell.generation !== page.generation || cell.ran !== textOf(cell)) return true;
  return page.cells
    .slice(0, place)
    .filter((above) => above.generation === page.generation)
    .some((above) => above.changed > cell.when || above.ran !== textOf(above));
}

/** The places of the cells that must run before this one: all from the first that is stale. */
export function needed(place) {
  const able = [...page.cells.keys()].slice(0, place).filter((n) => !page.cells[n].lacks.length);
  const first = able.find((n) => isStale(n));
  return first === undefined ? [] : able.filter((n) => n >= first);
}

/** "cell 3" or "cells 3 and 5": those above that failed when they ran last; "" if none did. */
export function failedAbove(place) {
  const failed = page.cells
    .slice(0, place)
    .filter((cell) => cell.number && cell.generation === page.generation && cell.ok === false)
    .map((cell) => cell.number);
  const last = failed.pop();
  return failed.length ? `cells ${failed.join(", ")} and ${last}` : last ? `cell ${last}` : "";
}
