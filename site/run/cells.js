// Run and Edit on the cells of a page. Python is asked for with the first click and not before.
import { make, offer, set, writingBox } from "./editor.js";

const PAGE = decodeURIComponent(location.pathname)
  .replace(/.*\/(?=chapters\/)/, "")
  .replace(/\.html$/, "");
const HOME = new URL("./", import.meta.url);
const PAUSE = 1500; // ms between what is loaded ahead
const OFTEN = "scipy.stats";
const bars = [...document.querySelectorAll(".run-bar")];

let python = null; // the module python.js, once asked for
// all cells of the page in order, hidden ones too: {source, mark, imports, lacks, number, bar}
let cells = null;
let clock = Date.now(); // counts runs: did a cell above change since? Kept figures have lower ones
let queue = Promise.resolve();
let generation = 0; // of the variables: a stop or reset begins a new one
let warmed = false; // is the rest on its way?

// ---- what the reader typed, kept in this browser ----

const keyOf = (bar) => `dpnotes-cell/${PAGE}/${bar.dataset.mark}`;

function kept(storage, key) {
  try {
    return globalThis[storage].getItem(key);
  } catch {
    return null; // a browser that keeps nothing
  }
}

function keep(bar, text) {
  try {
    if (text === null) localStorage.removeItem(keyOf(bar));
    else localStorage.setItem(keyOf(bar), text);
  } catch {
    note(bar, "This browser keeps nothing: the change is lost with the page.");
  }
}

// ---- the panel: what Python is doing ----

const panel = make("div", {
  className: "run-panel",
  hidden: true,
  aria: { role: "region", label: "Python in this page" },
});
panel.innerHTML = `<span class="run-status" role="status"></span>
<progress max="1" aria-label="Loading Python" hidden></progress>
<button type="button" data-do="stop" hidden>Stop</button>
<button type="button" data-do="again" hidden></button>
<button type="button" data-do="reset" hidden>Reset</button>
<button type="button" data-do="save" hidden>Download with my changes</button>
<button type="button" data-do="originals" hidden>Restore all</button>`;
document.body.append(panel);
const [status, progress, stopButton, againButton, resetButton, saveButton, originalsButton] =
  panel.children;

function say(text) {
  panel.hidden = false;
  if (status.textContent !== text) status.textContent = text;
}

function showProgress(text, fraction) {
  say(text);
  progress.hidden = false;
  progress.value = fraction;
}

function follow(state) {
  if (state === "deaf")
    return say("Stopped. What ran does not hear it and goes on unseen until this page is closed.");
  if (state === "off") {
    forget();
    say("Python has ended, the variables are gone; running a cell starts anew.");
  }
  stopButton.hidden = state !== "busy" && state !== "starting";
  resetButton.hidden = state !== "ready";
  if (state !== "starting") progress.hidden = true;
}

// ---- cells ----

const cellBox = (bar) => bar.parentElement;
const button = (bar, what) => bar.querySelector(`[data-do="${what}"]`);
const editorOf = (bar) => cellBox(bar).querySelector(".run-editor");
const textOf = (cell) => (cell.bar && editorOf(cell.bar) ? editorOf(cell.bar).value : cell.source);

function note(bar, text, failed = false) {
  const place = bar.querySelector(".run-note");
  place.textContent = text;
  place.classList.toggle("failed", failed);
}

async function load() {
  if (cells) return;
  const [answer, script] = await Promise.all([
    fetch(new URL(`cells/${PAGE}.json`, HOME), { cache: "no-cache" }),
    import("./python.js"),
  ]);
  if (!answer.ok) throw new Error(`the cells of this page could not be loaded (${answer.status})`);
  const found = await answer.json();
  if (!bars.every((bar) => found[bar.dataset.cell]?.mark === bar.dataset.mark))
    throw new Error("the book has changed since this page was loaded; reload the page");
  cells = found;
  bars.forEach((bar) => (cells[bar.dataset.cell].bar = bar));
  python = script;
  python.onState(follow);
}

// A cell's outputs below the printed ones, in markup that the book's style sheets know.

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
    const mark = `run${++clock}-`; // ids must differ from those of the printed figure
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
  const label = `Output of your run of cell ${cells[bar.dataset.cell].number}`;
  const made = make("div", { className: "cell_output run-output", aria: { role: "group", label } });
  bar.after(made);
  return begin(made, "Run in this page");
}

/** Empty but for a line that says what it shows. */
function begin(box, says) {
  box.dataset.says = says;
  box.replaceChildren(make("p", { className: "run-label" }, says));
  box.classList.remove("old");
  return box;
}

function show(bar, output) {
  const box = outputBox(bar);
  box.querySelector(".early")?.remove();
  const last = box.lastElementChild;
  if (output.type === "text" && last && last.matches(`.text_plain.${output.of || "none"}`)) {
    const text = last.firstElementChild.textContent + output.data;
    last.firstElementChild.textContent = text.replace(/[^\n]*\r(?=[^\r\n])/g, "");
    return;
  }
  const made = make("div");
  KINDS[output.type](made, output);
  made.classList.toggle("early", output.early === true);
  box.append(made);
}

// ---- running ----

// A cell must run (again) if its text is another one than the one that ran, or a cell above it is
// new or changed since: whether it ran in the meantime, failed, or was only edited.
function isStale(place, ran = cells[place].ran) {
  const cell = cells[place];
  if (cell.generation !== generation || ran !== textOf(cell)) return true;
  return cells
    .slice(0, place)
    .filter((above) => above.generation === generation)
    .some((above) => above.changed > cell.when || above.ran !== textOf(above));
}

const PRINTED = ":scope > .cell_output:not(.run-output)";
const BOOKS = "Printed in the book, from its own code";
const RESULTS = `dpnotes-results/${PAGE}`;
const resultOf = (bar) => cellBox(bar).querySelector(":scope > .run-output");

// Every output says which code it is of, when that is not the code as it stands now.
function markResults() {
  let edited = false; // is this cell, or one above it, another one than in the book?
  let old = 0;
  for (const [place, cell] of cells.entries()) {
    edited ||= textOf(cell) !== cell.source;
    const box = cell.bar && resultOf(cell.bar);
    if (box) {
      const isOld = isStale(place, cell.tried);
      const ended = cell.generation !== generation;
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
  againButton.hidden = !old;
  againButton.textContent = old === 1 ? "Run the old result again" : `Run ${old} old results again`;
  saveButton.hidden = originalsButton.hidden = !edited;
  if (edited) panel.hidden = false;
}

// The cells that must run before this one: all from the first that is stale.
function needed(place) {
  const able = [...cells.keys()].slice(0, place).filter((n) => !cells[n].lacks.length);
  const first = able.find((n) => isStale(n));
  return first === undefined ? [] : able.filter((n) => n >= first);
}

async function runOne(place, visible) {
  const cell = cells[place],
    text = textOf(cell),
    bar = visible || (cell.bar && resultOf(cell.bar)) ? cell.bar : null;
  if (bar) {
    const own = text === cell.source ? "" : "Your code, run in this page";
    begin(outputBox(bar), own || "Run in this page");
    note(bar, "running …");
  }
  const name = cell.number ? `cell ${cell.number}` : "a hidden cell";
  say(`Running ${name}`);
  const began = performance.now();
  const done = await python.run(text, {
    name,
    onOutput: bar ? (output) => show(bar, output) : undefined,
    onProgress: showProgress,
  });
  const seconds = (performance.now() - began) / 1000;
  cell.when = ++clock;
  if (cell.generation !== generation || cell.ran !== text) cell.changed = cell.when;
  Object.assign(cell, { generation, tried: text, ran: done.ok ? text : null });
  markResults();
  warm().catch(() => {});
  if (bar) {
    outputBox(bar).querySelector(".early")?.remove();
    const quiet = done.ok && !done.outputs.length;
    note(
      bar,
      `${done.ok ? "done" : "failed"} in ${seconds.toFixed(1)} s${quiet ? ", no output" : ""}`,
      !done.ok,
    );
    globalThis.watchScrolling(outputBox(bar));
  }
  return { ...done, shown: bar !== null };
}

// Run a cell after those above it that it needs; `visible` says whether these show what they give.
async function runCell(bar, visible = false, self = true) {
  const mine = generation;
  const place = Number(bar.dataset.cell);
  try {
    note(bar, "waiting …");
    await load();
    await python.start(showProgress, {
      modules: cells.slice(0, place + 1).flatMap((cell) => cell.imports),
    });
    if (mine !== generation) return;
    const above = needed(place);
    for (const [n, one] of above.entries()) {
      note(bar, `running the cells above: ${n + 1} of ${above.length}`);
      const done = await runOne(one, visible);
      if (done.ok) continue;
      const where = cells[one].number ? `Cell ${cells[one].number} above` : "A hidden cell above";
      if (!done.shown) show(cells[one].bar || bar, done.outputs.at(-1));
      note(bar, `${where} failed (${done.error.name}): this one did not run`, true);
      say(`${where} failed: ${done.error.name}`);
      return;
    }
    note(bar, "");
    const number = cells[place].number;
    if (!self) return say(`All cells above cell ${number} have run`);
    const done = await runOne(place, true);
    say(done.ok ? `Cell ${number}: done` : `Cell ${number}: ${done.error.name}`);
  } catch (error) {
    const stopped = error.name === "Stopped"; // then `follow` has said so
    const trouble = `Python failed: ${python ? python.reasonOf(error) : error.message}`;
    note(bar, stopped ? "stopped; the variables are gone" : trouble, true);
    if (!stopped) say(`${trouble}. Running a cell starts it anew.`);
    forget();
  }
}

function enqueue(...task) {
  const mine = generation;
  if (bars.length) button(task[0], "above").hidden = false;
  note(task[0], "waiting …");
  queue = queue.then(() => (mine === generation ? runCell(...task) : note(task[0], "")));
  return queue;
}

function forget() {
  generation++;
  queue = Promise.resolve();
  if (cells) markResults();
}

async function reset() {
  forget();
  document.querySelectorAll(".run-output").forEach((box) => box.remove());
  bars.forEach((bar) => note(bar, ""));
  markResults();
  await python.reset();
  say("Reset: no variables. What you typed is still there.");
}

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
    changed = area && area.value !== cells[bar.dataset.cell].source;
  button(bar, "edit").hidden = !!area;
  button(bar, "restore").hidden = !changed;
  button(bar, "close").hidden = !area || changed;
  button(bar, "above").hidden = !area && !resultOf(bar);
  markResults();
  return changed;
}

function openEditor(bar, text) {
  const label = `Code of cell ${cells[bar.dataset.cell].number}`;
  const area = writingBox(true, { value: text, aria: { label } }, () => enqueue(bar));
  frame(bar).append(area);
  cellBox(bar).classList.add("run-edited");
  const folded = area.closest("details");
  if (folded) folded.open = true;
  area.addEventListener("input", () => {
    keep(bar, mirror(bar) ? area.value : null);
    tellSignature(bar, area).catch(() => {});
  });
  area.addEventListener("keydown", ({ key }) => key === "Escape" && button(bar, "run").focus());
  mirror(bar);
  return area;
}

// After an opening parenthesis: what the function asks for, if Python is there and free.
async function tellSignature(bar, area) {
  const name = area.value.slice(0, area.selectionStart).match(/([\w.]+)\($/)?.[1];
  if (name && python.state() === "ready")
    note(bar, await python.call("page_shell.signature", [name]));
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

const ACTIONS = {
  run: (bar) => enqueue(bar),
  above: (bar) => enqueue(bar, true, false),
  async edit(bar) {
    await load();
    (editorOf(bar) || openEditor(bar, cells[bar.dataset.cell].source)).focus();
  },
  restore(bar) {
    set(editorOf(bar), cells[bar.dataset.cell].source);
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
stopButton.addEventListener("click", () => python.stop());
againButton.addEventListener("click", () =>
  bars.filter((bar) => resultOf(bar)?.matches(".old")).forEach((bar) => enqueue(bar)),
);
saveButton.addEventListener("click", saveNotebook);
originalsButton.addEventListener("click", () => bars.filter(editorOf).forEach(ACTIONS.restore));
resetButton.addEventListener("click", reset);

// The notebook of this page, with the reader's cells in the place of the book's.
async function saveNotebook() {
  const name = `${PAGE.split("/").pop()}.ipynb`;
  const answer = await fetch(new URL(`../downloads/${name}`, HOME)).catch(() => ({}));
  if (!answer.ok) return say("The notebook could not be loaded: try again with network.");
  const notebook = await answer.json();
  const blocks = notebook.cells.filter((one) => one.cell_type === "code" && one.source.length);
  cells.forEach((cell, n) => (blocks[n].source = textOf(cell)));
  offer(name, JSON.stringify(notebook, null, 1));
  say("The notebook with your changes is in your downloads.");
}

// What was typed before is there again, and in this tab what was shown, marked as old.
async function recall() {
  const typedIn = (bar) => kept("localStorage", keyOf(bar));
  const typed = bars.map((bar) => [bar, typedIn(bar)]).filter(([, text]) => text !== null);
  const shown = JSON.parse(kept("sessionStorage", RESULTS) || "{}");
  const before = bars.filter((bar) => shown[bar.dataset.mark]);
  if (!typed.length && !before.length) return;
  await load();
  for (const bar of before) {
    const box = outputBox(bar);
    ({ says: box.dataset.says, html: box.innerHTML } = shown[bar.dataset.mark]);
  }
  typed.forEach(([bar, text]) => openEditor(bar, text));
  markResults();
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

// Until Python has nothing to do and the reader has let a moment pass: a run must not wait.
async function calm() {
  do await new Promise((done) => setTimeout(done, PAUSE));
  while (python.state() === "busy" || python.state() === "starting");
}

// Who has run a cell in this visit will run one here: Python starts while the page is being read,
// with what the first cell imports. What others import follows, one module at a time, and then what
// takes longest to import and many pages need.
async function warm() {
  const used = kept("sessionStorage", "dpnotes-python");
  if (warmed || !used || !bars.length || navigator.connection?.saveData) return;
  warmed = true;
  await load();
  const wanted = (some) => [...new Set(some.flatMap((cell) => cell.imports))];
  const first = wanted(cells.slice(0, Number(bars[0].dataset.cell) + 1));
  await python.start(undefined, { modules: first });
  for (const module of [...wanted(cells), OFTEN].filter((name) => !first.includes(name))) {
    await calm();
    await python.warm([module]);
  }
}

document.documentElement.dataset.run = "on";
recall();
addEventListener("load", () =>
  (window.requestIdleCallback || setTimeout)(() => warm().catch(() => {})),
);
