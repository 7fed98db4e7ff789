// An assignment done in the page: answers are written, checked, kept, loaded and handed in.
import { offer, set } from "../_run/editor.js";
import { available, reasonOf, Stopped, stop } from "../_run/python.js";
import { mark, Store } from "./keep.js";
import { assemble, isAnswer, partsOf, readFile, save, tidy } from "./notebook.js";
import { outdate, preview } from "./preview.js";
import { evaluate } from "./tests.js";
import { answerBox, ask, button, frame, nameOf, showResult, titleOf } from "./view.js";

const source = document.getElementById("homework");
const notebook = JSON.parse(source.textContent);
const { name, version } = source.dataset;
const parts = partsOf(notebook);
const answers = parts.filter(isAnswer);
const store = new Store(name, version);
const boxes = new Map(); // id of an answer -> its box
const undone = new Map(); // id -> what a reset took away
let bar,
  running = null;

const textOf = (part) => store.data.answers[part.id] ?? part.source;
const isAnswered = (part) => part.id in store.data.answers;

/** Keep an answer; what equals the stub, or an empty text, is no answer. */
function setAnswer(part, text) {
  const blank = text === part.source || (part.kind === "words" && !text.trim());
  if (blank) delete store.data.answers[part.id];
  else store.data.answers[part.id] = text;
}

function show(part) {
  const text = isAnswered(part) || part.kind !== "words" ? textOf(part) : "";
  const { area } = boxes.get(part.id);
  if (area.value !== text) set(area, text);
}

/** The last result of an answer, unless something that it rests on has changed. */
function resultOf(part) {
  const result = store.data.results[part.id];
  if (!result) return null;
  const now = answers.filter((other) => other.id in result.needs);
  return { ...result, stale: now.some((other) => mark(textOf(other)) !== result.needs[other.id]) };
}

const passes = (part) => resultOf(part)?.ok && !resultOf(part).stale;

function refresh() {
  for (const part of answers) {
    const box = boxes.get(part.id),
      result = resultOf(part);
    box.reset.textContent = undone.has(part.id) && !isAnswered(part) ? "Undo reset" : "Reset";
    if (part.kind === "words") outdate(box.result, textOf(part));
    if (running?.part === part || part.kind === "words") continue;
    const state = !result ? "none" : result.stale ? "stale" : result.ok ? "pass" : "fail";
    const now = [state, result?.message, result?.at].join();
    if (box.shown === now) continue;
    box.shown = now;
    const message = {
      none: "",
      stale: "Changed since it was checked.",
      pass: part.kind === "code" ? "The public tests pass." : "Drawn.",
      fail: result?.message,
    }[state];
    showResult(box, part, state, message, state === "stale" ? {} : (result ?? {}));
  }
  const tested = answers.filter((part) => part.kind === "code"),
    texts = answers.filter((part) => part.kind === "words");
  const right = tested.filter(passes).length;
  const passed = `${right} of ${tested.length} questions pass their public tests`;
  const line = `${passed}; texts: ${texts.filter(isAnswered).length} of ${texts.length}`;
  if (bar.progress.textContent !== line) bar.progress.textContent = line;
}

let waiting;
function keep() {
  clearTimeout(waiting);
  waiting = undefined;
  store.write();
  if (!store.works) bar.tell("This browser does not keep your answers: save them to a file.");
}

function keepSoon() {
  waiting ??= setTimeout(keep, 300);
}

function edited(part) {
  undone.delete(part.id);
  setAnswer(part, tidy(boxes.get(part.id).area.value));
  refresh();
  keepSoon();
}

function reset(part) {
  const text = undone.get(part.id);
  if (!isAnswered(part) && text === undefined) return;
  if (isAnswered(part)) {
    undone.set(part.id, textOf(part));
    setAnswer(part, part.source);
  } else {
    setAnswer(part, text);
    undone.delete(part.id);
  }
  show(part);
  refresh();
  keep();
}

// ---- checks ----

/** Check one answer and show what comes out; false if there was no result. */
async function check(part) {
  const box = boxes.get(part.id);
  running = { part };
  box.action.textContent = "Stop";
  showResult(box, part, "busy", "Starting");
  const seen = Object.fromEntries(answers.map((other) => [other.id, mark(textOf(other))]));
  let trouble = null; // what has nothing to do with the answer: stopped, Python did not come
  try {
    const cells = parts
      .filter((other) => other.kind !== "words")
      .map((other) => ({ id: other.id, kind: other.kind, source: textOf(other) }));
    const found = await evaluate(part, cells, (text) => showResult(box, part, "busy", `${text} …`));
    const needs = Object.fromEntries(found.needs.map((id) => [id, seen[id]]));
    store.data.results[part.id] = { ...found, needs, at: Date.now() };
  } catch (error) {
    trouble = error instanceof Stopped ? "stopped before it ended" : reasonOf(error);
    delete store.data.results[part.id];
  }
  running = null;
  box.action.textContent = box.usual;
  box.shown = null;
  refresh();
  keep();
  const kept = store.works ? " Your answer is kept." : "";
  if (trouble) showResult(box, part, "trouble", `Not checked: ${trouble}.${kept}`);
  return !trouble;
}

const occupied = () =>
  `The check of ${nameOf(running.part)} is still running: wait for it, or stop it.`;

async function act(part) {
  if (part.kind === "words") return preview(boxes.get(part.id).result, textOf(part));
  if (running?.part === part) return stop();
  if (running) return showResult(boxes.get(part.id), part, "busy", occupied());
  await check(part);
}

let round = false; // are all being checked?
async function checkAll() {
  if (round) {
    round = false;
    return stop();
  }
  if (running) return bar.tell(occupied());
  const todo = answers.filter((part) => part.kind !== "words" && isAnswered(part));
  if (!todo.length) return bar.tell("There is no answer to check yet.");
  bar.tell("");
  round = true;
  bar.all.textContent = "Stop";
  for (const part of todo) if (!round || !(await check(part))) break;
  bar.all.textContent = "Check all";
  round = false;
  const failing = todo.filter((part) => !passes(part)).map(titleOf);
  bar.tell(
    failing.length
      ? `Look again at ${failing.join(", ")}.`
      : "All that is answered passes its public tests.",
  );
}

// ---- files ----

function download() {
  keep();
  const pictures = {};
  for (const part of answers)
    if (part.kind === "plot" && isAnswered(part) && passes(part))
      pictures[part.id] = store.data.results[part.id].pictures;
  offer(`${name}.ipynb`, assemble(notebook, store.data.answers, pictures));
  bar.tell(["The notebook is in your downloads.", ...remarksOn(pictures)].join(" "));
}

/** What a student should know before the notebook is handed in. */
function remarksOn(pictures) {
  const given = answers.filter(isAnswered),
    tested = given.filter((part) => part.kind === "code");
  const lists = [
    ["Not answered", answers.filter((part) => !isAnswered(part))],
    [
      "Fails its public tests",
      tested.filter((part) => resultOf(part)?.ok === false && !resultOf(part).stale),
    ],
    ["Not checked as it is now", tested.filter((part) => resultOf(part)?.stale ?? true)],
    [
      "Without a picture, since it was not drawn here",
      given.filter((part) => part.kind === "plot" && !pictures[part.id]),
    ],
  ].filter(([, found]) => found.length);
  if (!lists.length) return ["Hand it in as it is."];
  return [
    ...lists.map(([text, found]) => `${text}: ${found.map(titleOf).join(", ")}.`),
    "It can be handed in so.",
  ];
}

function saveFile() {
  keep();
  offer(`${name}-answers.json`, save(name, version, store.data.answers));
  bar.tell("Your answers are in your downloads.");
}

/** Put all answers in place of what is here; the ones before can be had again. */
function replaceAll(next, text) {
  const before = store.data.answers;
  store.data.answers = next;
  undone.clear();
  answers.forEach(show);
  refresh();
  keep();
  bar.tell(
    text,
    button("Undo", () => replaceAll(before, "Undone.")),
  );
}

async function load(file) {
  let found;
  try {
    found = readFile(await file.text(), { notebook, assignment: name, version });
  } catch (error) {
    return bar.tell(
      `“${file.name}” was not loaded: ${error.message}. Your answers are as they were.`,
    );
  }
  await takeOver(found.answers, found.notes, `“${file.name}”`);
}

/** Take answers over; those that would be lost only if the reader says so. */
async function takeOver(found, notes, from) {
  const isNew = (part) =>
    found[part.id] !== undefined && ![part.source, textOf(part), ""].includes(found[part.id]);
  const changed = answers.filter(isNew),
    lost = changed.filter(isAnswered).map(titleOf);
  if (!changed.length)
    return bar.tell([`${from} holds no answer that is not here already.`, ...notes].join(" "));
  if (
    lost.length &&
    !(await ask(
      `${from} has other answers to ${lost.join(", ")} than you have here. Replace yours?`,
      "Replace",
      "Keep mine",
    ))
  ) {
    return bar.tell("Nothing was loaded.");
  }
  const next = { ...store.data.answers };
  for (const part of changed) next[part.id] = found[part.id];
  replaceAll(
    next,
    [`Loaded from ${from}: ${changed.map(titleOf).join(", ")}.`, ...notes].join(" "),
  );
}

// ---- start ----

function begin() {
  bar = frame({ checkAll, download, save: saveFile, load });
  for (const part of answers) {
    boxes.set(
      part.id,
      answerBox(part, {
        onInput: () => edited(part),
        onAction: () => act(part),
        onReset: () => reset(part),
      }),
    );
    show(part);
  }
  refresh();
  store.onChange(() => {
    answers.forEach(show);
    refresh();
  });
  addEventListener("pagehide", () => waiting && keep());
  document.addEventListener("visibilitychange", () => waiting && keep());
  const older = Object.keys(store.data.answers).length ? null : store.older();
  if (older) {
    const last = older.at ? `, last on ${new Date(older.at).toLocaleDateString()}` : "";
    bar.tell(
      `You have written answers to an earlier version of this assignment${last}.`,
      button("Take them over", () =>
        takeOver(older.answers, ["Check them again."], "the earlier version"),
      ),
    );
  }
}

if (await available) begin();
