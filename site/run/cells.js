// Run and Edit on the cells of a page. Python is asked for with the first click and not before.
import { make, offer, set, writingBox } from "./editor.js";
import {
  bars,
  button,
  cellBox,
  cellOf,
  editorOf,
  HOME,
  NAME,
  note,
  page,
  resultOf,
  textOf,
} from "./page.js";
import { again, isRunning, originals, reset, save, say, stopAll } from "./panel.js";
import { markResults, showAgain, shownBefore } from "./results.js";
import { enqueue, forget, loadCells, warm } from "./running.js";

// ---- what the reader typed, kept in this browser ----

const keyOf = (bar) => `dpnotes-cell/${NAME}/${bar.dataset.mark}`;

function typedIn(bar) {
  try {
    return localStorage.getItem(keyOf(bar));
  } catch {
    return null; // a browser that keeps nothing
  }
}

function keep(bar, text) {
  let keeps = !localStorage.ends; // see the first script of each page
  try {
    if (text === null) localStorage.removeItem(keyOf(bar));
    else localStorage.setItem(keyOf(bar), text);
  } catch {
    keeps = false; // it is full
  }
  if (!keeps) note(bar, "This browser keeps nothing: the change is lost with the page.");
}

// Another tab of this page: what is typed there shows here, too.
addEventListener("storage", async ({ key, newValue }) => {
  const bar = bars.find((one) => keyOf(one) === key);
  if (!bar) return;
  await loadCells();
  const text = newValue ?? cellOf(bar).source;
  if (textOf(cellOf(bar)) === text) return;
  set(editorOf(bar) || openEditor(bar, text), text);
  mirror(bar);
  note(bar, "changed in another tab of this page");
});

// ---- editing ----

function frame(bar) {
  const box = cellBox(bar);
  const code = box.querySelector(":scope > .cell_input, :scope > details .cell_input");
  if (code) return code;
  const made = make("div", { className: "cell_input" });
  bar.before(made);
  return made;
}

function mirror(bar) {
  const area = editorOf(bar),
    changed = area && area.value !== cellOf(bar).source;
  button(bar, "edit").hidden = !!area;
  button(bar, "restore").hidden = !changed;
  button(bar, "close").hidden = !area || changed;
  button(bar, "above").hidden = !area && !resultOf(bar);
  markResults();
  return changed;
}

function openEditor(bar, text) {
  const label = `Code of cell ${cellOf(bar).number}`;
  const area = writingBox(true, { value: text, aria: { label } }, () => enqueue(bar));
  frame(bar).append(area);
  cellBox(bar).classList.add("run-edited");
  const folded = area.closest("details");
  if (folded) folded.open = true;
  area.addEventListener("input", () => {
    keep(bar, mirror(bar) ? area.value : null);
    tellSignature(bar, area).catch(() => {});
  });
  mirror(bar);
  return area;
}

// After an opening parenthesis: what the function asks for, if Python is there and free.
async function tellSignature(bar, area) {
  const name = area.value.slice(0, area.selectionStart).match(/([\w.]+)\($/)?.[1];
  if (name && page.python.state() === "ready")
    note(bar, await page.python.call("page_shell.signature", [name]));
}

function closeEditor(bar) {
  const area = editorOf(bar),
    input = area.parentElement;
  area.remove();
  if (!input.children.length) input.remove();
  cellBox(bar).classList.remove("run-edited");
  mirror(bar);
  button(bar, "edit").focus();
}

// ---- what the buttons and keys do ----

const ACTIONS = {
  run: (bar) => enqueue(bar),
  stop: () => page.python?.stop(),
  above: (bar) => enqueue(bar, true, false),
  async edit(bar) {
    await loadCells();
    (editorOf(bar) || openEditor(bar, cellOf(bar).source)).focus();
  },
  restore(bar) {
    set(editorOf(bar), cellOf(bar).source);
    keep(bar, null);
    mirror(bar);
    editorOf(bar).focus();
    note(bar, "the original again");
  },
  close: closeEditor,
};

document.addEventListener("click", (event) => {
  const pressed = event.target.closest(".run-bar button");
  if (!pressed) return;
  const bar = pressed.closest(".run-bar");
  Promise.resolve(ACTIONS[pressed.dataset.do](bar)).catch((error) =>
    note(bar, error.message, true),
  );
});

// Escape stops the cell that runs; from code that does not run it leads to Run.
for (const bar of bars)
  cellBox(bar).addEventListener("keydown", ({ key, target }) => {
    if (key !== "Escape") return;
    if (isRunning(bar)) ACTIONS.stop();
    else if (target === editorOf(bar)) button(bar, "run").focus();
  });

stopAll.addEventListener("click", ACTIONS.stop);
again.addEventListener("click", () =>
  bars.filter((bar) => resultOf(bar)?.matches(".old")).forEach((bar) => enqueue(bar)),
);
originals.addEventListener("click", () => bars.filter(editorOf).forEach(ACTIONS.restore));
reset.addEventListener("click", async () => {
  forget();
  document.querySelectorAll(".run-output").forEach((box) => box.remove());
  bars.forEach((bar) => note(bar, ""));
  markResults();
  await page.python.reset();
  say("Reset: no variables. What you typed is still there.");
});

// The notebook of this page, with the reader's cells in the place of the book's.
save.addEventListener("click", async () => {
  const name = `${NAME.split("/").pop()}.ipynb`;
  const answer = await fetch(new URL(`../downloads/${name}`, HOME)).catch(() => ({}));
  if (!answer.ok) return say("The notebook could not be loaded: try again with network.");
  const notebook = await answer.json();
  const blocks = notebook.cells.filter((one) => one.cell_type === "code" && one.source.length);
  page.cells.forEach((cell, n) => cell.bar && (blocks[n].source = textOf(cell)));
  offer(name, JSON.stringify(notebook, null, 1));
  say("The notebook with your changes is in your downloads.");
});

// What was typed before is there again, and in this tab what was shown, marked as old.
async function recall() {
  const typed = bars.filter((bar) => typedIn(bar) !== null);
  const shown = shownBefore();
  const before = bars.filter((bar) => shown[bar.dataset.mark]);
  if (!typed.length && !before.length) return;
  await loadCells();
  before.forEach((bar) => showAgain(bar, shown[bar.dataset.mark]));
  typed.forEach((bar) => openEditor(bar, typedIn(bar)));
  markResults();
}

document.documentElement.dataset.run = "on";
recall();
addEventListener("load", () =>
  (window.requestIdleCallback || setTimeout)(() => warm().catch(() => {})),
);
