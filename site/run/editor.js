// A text area that can be programmed in: Tab indents, Enter keeps the indentation,
// Escape makes the next Tab leave.

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

/** Make a text area grow with its text and, for code, behave as an editor does. */
export function enrich(area, code) {
  area.addEventListener("input", () => fit(area));
  fit(area);
  if (!code) return;
  let leaving = false;
  area.addEventListener("blur", () => (leaving = false));
  area.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") leaving = true;
    else if (event.key === "Tab" && !leaving) {
      event.preventDefault();
      shift(area, event.shiftKey);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      newLine(area);
    } else if (!["Tab", "Shift"].includes(event.key)) leaving = false;
  });
}

/** Set the text from outside. */
export function set(area, text) {
  area.value = text;
  fit(area);
}
