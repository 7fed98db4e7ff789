// Running cells, one after the other, each after those above it that it needs.
import { bars, button, failedAbove, load, needed, note, page, resultOf, textOf } from "./page.js";
import { offerStop, say, showProgress, showState, withdrawStop } from "./panel.js";
import { begin, finish, markResults, show } from "./results.js";

const PAUSE = 1500; // ms between what is loaded ahead
const OFTEN = "scipy.stats";
let clock = 0; // counts runs
let queue = Promise.resolve();
let warmed = false; // is the rest on its way?

export const loadCells = () => load(follow);

function follow(state) {
  if (state === "deaf")
    return say("Stopped. What ran does not hear it and goes on unseen until this page is closed.");
  if (state === "off") {
    forget();
    say("Python has ended, the variables are gone; running a cell starts anew.");
  }
  showState(state);
}

export function forget() {
  page.generation++;
  queue = Promise.resolve();
  withdrawStop();
  if (page.cells) markResults();
}

/** Run a cell, and note how it went; `bar`: where that is shown, or null. */
async function runOne(place, bar) {
  const cell = page.cells[place],
    text = textOf(cell);
  const failed = failedAbove(place);
  if (bar) {
    const own = text === cell.source ? "Run in this page" : "Your code, run in this page";
    begin(bar, failed ? `${own}, after ${failed} failed` : own);
    note(bar, "running …");
  }
  const name = cell.number ? `cell ${cell.number}` : "a hidden cell";
  say(`Running ${name}`);
  const began = performance.now();
  const done = await page.python.run(text, {
    name,
    onOutput: bar ? (output) => show(bar, output) : undefined,
    onProgress: showProgress,
  });
  const seconds = (performance.now() - began) / 1000;
  cell.when = ++clock;
  if (cell.generation !== page.generation || cell.ran !== text) cell.changed = cell.when;
  Object.assign(cell, { generation: page.generation, ran: text, ok: done.ok });
  if (!bar && cell.bar && !done.ok) {
    bar = cell.bar;
    begin(bar, "Run in this page");
    show(bar, done.outputs.at(-1));
  }
  markResults();
  warm().catch(() => {});
  if (bar) {
    const quiet = done.ok && !done.outputs.length;
    const said = `${done.ok ? "done" : "failed"} in ${seconds.toFixed(1)} s`;
    note(bar, said + (quiet ? ", no output" : "") + (failed ? `; ${failed} failed` : ""), !done.ok);
    finish(bar);
  }
  return done;
}

// Run a cell after those above it that it needs; `visible` says whether these show what they give.
// One that fails stops nothing: Python says what is missing.
async function runCell(bar, visible = false, self = true) {
  const mine = page.generation;
  const place = Number(bar.dataset.cell);
  try {
    offerStop(bar);
    await loadCells();
    const { cells, python } = page;
    await python.start(showProgress, {
      modules: cells.slice(0, place + 1).flatMap((cell) => cell.imports),
    });
    if (mine !== page.generation) return;
    const above = needed(place);
    for (const [n, one] of above.entries()) {
      note(bar, `running the cells above: ${n + 1} of ${above.length}`);
      const own = cells[one].bar;
      await runOne(one, visible || (own && resultOf(own)) ? own : null);
    }
    note(bar, "");
    const number = cells[place].number;
    if (!self) return say(`All cells above cell ${number} have run`);
    const done = await runOne(place, bar);
    say(done.ok ? `Cell ${number}: done` : `Cell ${number}: ${done.error.name}`);
  } catch (error) {
    const stopped = error.name === "Stopped"; // then `follow` has said so
    const trouble = `Python failed: ${page.python?.reasonOf(error) ?? error.message}`;
    note(bar, stopped ? "stopped; the variables are gone" : trouble, true);
    if (!stopped) say(`${trouble}. Running a cell starts it anew.`);
    forget();
  } finally {
    if (mine === page.generation) withdrawStop();
  }
}

export function enqueue(...task) {
  const [bar] = task,
    mine = page.generation;
  button(bar, "above").hidden = false;
  note(bar, "waiting …");
  queue = queue.then(() => (mine === page.generation ? runCell(...task) : note(bar, "")));
  return queue;
}

// Until Python has nothing to do and the reader has let a moment pass: a run must not wait.
async function calm() {
  const { python } = page;
  do await new Promise((done) => setTimeout(done, PAUSE));
  while (python.state() === "busy" || python.state() === "starting");
}

function hasRun() {
  try {
    return sessionStorage.getItem("dpnotes-python") !== null;
  } catch {
    return false; // a browser that keeps nothing
  }
}

// Who has run a cell in this visit will run one here: Python starts while the page is being read,
// with what the first cell imports. What others import follows, one module at a time, and then what
// takes longest to import and many pages need.
export async function warm() {
  if (warmed || !hasRun() || !bars.length || navigator.connection?.saveData) return;
  warmed = true;
  await loadCells();
  const { cells, python } = page;
  const wanted = (some) => [...new Set(some.flatMap((cell) => cell.imports))];
  const first = wanted(cells.slice(0, Number(bars[0].dataset.cell) + 1));
  await python.start(undefined, { modules: first });
  for (const module of [...wanted(cells), OFTEN].filter((name) => !first.includes(name))) {
    await calm();
    await python.warm([module]);
  }
}
