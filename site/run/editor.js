// A text area that can be programmed in: Tab indents, Enter keeps the indentation,
// Escape makes the next Tab leave.

/** An element with properties (`aria` for a dictionary of attributes) and children. */
export function make(tag, { aria = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(aria))
    element.setAttribute(name.startsWith("role") ? name : `aria-${name}`, value);
  element.append(...children);
  return element;
}

const STEP = "    ";

/** Replace the selection so that the browser's own undo knows of it. */
function insert(area, text) {
  area.focus();
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Indent the lines of the selection, or take a step back. */
function shift(area, back) {
  const { value, selectionStart: from, selectionEnd: to } = area;
  if (from === to && !back) return insert(area, STEP);
  const start = value.lastIndexOf("\n", from - 1) + 1;
  const lines = value.slice(start, Math.max(start, to)).split("\n");
  const moved = lines
    .map((line) => (back ? line.replace(/^ {1,4}/, "") : line && STEP + line))
    .join("\n");
  if (moved === lines.join("\n")) return;
  area.setSelectionRange(start, Math.max(start, to));
  insert(area, moved);
  if (from === to)
    area.setSelectionRange(
      Math.max(start, from - STEP.length),
      Math.max(start, from - STEP.length),
    );
  else area.setSelectionRange(start, start + moved.length);
}

function newLine(area) {
  const before = area.value.slice(0, area.selectionStart);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const indent = line.match(/^ */)[0] + (/:\s*(#.*)?$/.test(line) ? STEP : "");
  insert(area, `\n${indent}`);
}

/** As many rows as lines, for browsers that can't do it alone. */
function fit(area) {
  area.rows = Math.max(2, area.value.split("\n").length);
}

/** What the keys do in code. */
function program(area, onRun) {
  let leaving = false;
  area.addEventListener("blur", () => (leaving = false));
  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    if (key === "Enter" && (shiftKey || ctrlKey || metaKey)) {
      event.preventDefault();
      onRun();
    } else if (ctrlKey || metaKey || altKey) return;
    else if (key === "Escape") leaving = true;
    else if (key === "Tab" && !leaving) {
      event.preventDefault();
      shift(area, shiftKey);
    } else if (key === "Enter") {
      event.preventDefault();
      newLine(area);
    } else if (!["Tab", "Shift"].includes(key)) leaving = false;
  });
}

/** A box for code or for words that grows with its text; Shift (or Ctrl) and Enter run code. */
export function writingBox(code, properties, onRun) {
  const area = make("textarea", {
    className: "run-editor",
    spellcheck: !code,
    autocapitalize: code ? "off" : "sentences",
    autocomplete: "off",
    wrap: code ? "off" : "soft",
    ...properties,
  });
  area.setAttribute("autocorrect", "off");
  area.addEventListener("input", () => fit(area));
  fit(area);
  if (code) program(area, onRun);
  return area;
}

/** Set the text from outside. */
export function set(area, text) {
  area.value = text;
  fit(area);
}

/** Let the reader save a text as a file. */
export function offer(name, text) {
  const link = make("a", {
    download: name,
    href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
