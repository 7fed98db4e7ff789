// The panel at the foot of the page: what Python is doing, and what can be done about all cells.
// And the button that stops the cell that runs, beside that cell's own Run.
import { make } from "./editor.js";
import { button } from "./page.js";

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
const [status, progress] = panel.children;
export const [, , stopAll, again, reset, save, originals] = panel.children;

export function say(text) {
  panel.hidden = false;
  if (status.textContent !== text) status.textContent = text;
}

export function showProgress(text, fraction) {
  say(text);
  progress.hidden = false;
  progress.value = fraction;
}

/** Python is "off", "starting", "ready" or "busy" now. */
export function showState(state) {
  stopAll.hidden = state !== "busy" && state !== "starting";
  reset.hidden = state !== "ready";
  if (state !== "starting") progress.hidden = true;
}

/** What can be done now: run so many old results again; save or undo changes. */
export function offerActions({ old, edited }) {
  again.hidden = !old;
  again.textContent = old === 1 ? "Run the old result again" : `Run ${old} old results again`;
  save.hidden = originals.hidden = !edited;
  if (edited) panel.hidden = false;
}

const stopOne = make("button", { type: "button" }, "Stop");
stopOne.dataset.do = "stop";

/** The bar of the cell that runs has a Stop after its Run. */
export function offerStop(bar) {
  const run = button(bar, "run");
  stopOne.setAttribute("aria-label", run.getAttribute("aria-label").replace("Run", "Stop"));
  run.after(stopOne);
}

/** No cell runs any more; who stood on Stop stands on Run. */
export function withdrawStop() {
  const run = stopOne.previousElementSibling;
  if (stopOne === document.activeElement) run?.focus();
  stopOne.remove();
}

export const isRunning = (bar) => bar.contains(stopOne);
