// The pieces of the page in which answers are written: made here, given their meaning in
// homework.js.

import { make, writingBox } from "../_run/editor.js";

export const button = (text, onclick, more = {}) =>
  make("button", { type: "button", textContent: text, onclick, className: "hw-button", ...more });

/** How a question is called where it is spoken of. */
export const nameOf = (part) => part.id.replace(/-plot$/, "");

/** The same in a list, where an answer and its plot stand side by side. */
export const titleOf = (part) => nameOf(part) + (part.kind === "plot" ? " (plot)" : "");

const LABELS = { code: "Your answer to", plot: "Your plot for", words: "Your text for" };
const ACTIONS = { code: "Check", plot: "Draw", words: "Preview" };

/** The box of one answer, where the page shows its stub. */
export function answerBox(part, { onInput, onAction, onReset }) {
  const place = document.getElementById(`cell-${part.id}`),
    code = part.kind !== "words";
  const area = writingBox(
    code,
    {
      id: `answer-${part.id}`,
      placeholder: code ? "" : "Your answer here.",
      aria: { describedby: code ? "hw-keys" : "hw-markdown" },
    },
    onAction,
  );
  area.classList.toggle("hw-words", !code);
  const label = make("label", {
    htmlFor: area.id,
    textContent: `${LABELS[part.kind]} ${nameOf(part)}`,
  });
  const action = button(`${ACTIONS[part.kind]} ${nameOf(part)}`, onAction);
  const reset = button("Reset", onReset, {
    aria: { label: `Reset the answer to ${nameOf(part)}` },
  });
  const result = make("div", { className: "hw-result", aria: { role: "status" } });
  const row = make("div", { className: "hw-row" }, action, reset);
  const box = code
    ? place
    : make("div", { className: "cell" }, make("div", { className: "cell_input" }));
  if (!code) {
    place.after(box);
    place.hidden = true;
  }
  const frame = box.querySelector(".cell_input");
  box.classList.add("hw-answer", "run-edited");
  box.prepend(label);
  frame.append(area);
  frame.after(row, result);
  area.addEventListener("input", onInput);
  return { area, action, reset, result, usual: action.textContent };
}

/** What a check found: a line, what was printed, the plots. */
export function showResult(box, part, state, message = "", { printed = "", pictures = [] } = {}) {
  const marks = { pass: "✓ ", fail: "✗ ", stale: "", busy: "", none: "", trouble: "" };
  box.result.dataset.state = state;
  box.result.replaceChildren();
  if (message) box.result.append(make("p", { textContent: marks[state] + message }));
  if (printed)
    box.result.append(
      make("p", { className: "hw-small", textContent: "Printed:" }),
      make("pre", {
        textContent: printed,
        tabIndex: 0,
        aria: { role: "group", label: "What your code printed" },
      }),
    );
  for (const png of pictures)
    box.result.append(
      make("img", { src: `data:image/png;base64,${png}`, alt: `Your plot for ${nameOf(part)}` }),
    );
}

/** The bar that stays in sight. */
export function frame(actions) {
  const file = make("input", {
    type: "file",
    accept: ".ipynb,.json",
    hidden: true,
    onchange: () => file.files[0] && actions.load(file.files[0]).finally(() => (file.value = "")),
  });
  const progress = make("p", { className: "hw-progress", aria: { role: "status" } });
  const news = make("div", { className: "hw-news", aria: { role: "status" } });
  const all = button("Check all", actions.checkAll);
  const buttons = make(
    "div",
    { className: "hw-row" },
    all,
    button("Download to hand in", actions.download, { className: "hw-button hw-main" }),
    button("Save", actions.save, { aria: { label: "Save your answers to a file" } }),
    button("Load…", () => file.click(), {
      aria: { label: "Load answers from a file or a notebook" },
    }),
    file,
  );
  const bar = make(
    "section",
    { className: "hw-bar", aria: { label: "Your work" } },
    progress,
    buttons,
    news,
  );
  document.querySelector(".bd-article").append(bar);
  /** Say something in the bar, perhaps with a button. */
  const tell = (text, action = "") =>
    news.replaceChildren(text && make("p", { textContent: text }, " ", action));
  return { progress, tell, all };
}

/** A question with two answers; resolves to true for the first. */
export function ask(text, yes, no) {
  return new Promise((resolve) => {
    const close = (value) => () => box.close(value);
    const box = make(
      "dialog",
      { className: "hw-dialog", aria: { labelledby: "hw-asked" } },
      make("p", { id: "hw-asked", textContent: text }),
      make(
        "div",
        { className: "hw-row" },
        button(yes, close("yes")),
        button(no, close("no"), { autofocus: true }),
      ),
    );
    box.addEventListener("close", () => {
      resolve(box.returnValue === "yes");
      box.remove();
    });
    document.body.append(box);
    box.showModal();
  });
}
