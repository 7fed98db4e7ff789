// Small comforts; every page is complete without them.

// Boxes that scroll can be reached and scrolled with the keyboard, and say what they are.
const BOXES = {
  ".math-scroll": "Equation",
  ".bd-article pre": "Code",
  ".cell_output:not(.run-output), .cell_output .output": "Output",
  ".pst-scrollable-table-container": "Table",
};

function mark(box, scrolls) {
  const [, name] = Object.entries(BOXES).find(([selector]) => box.matches(selector));
  const wanted = { tabindex: "0", role: "group", "aria-label": `${name}, scrolls` };
  for (const [key, value] of Object.entries(wanted)) {
    if (scrolls) box.setAttribute(key, value);
    else box.removeAttribute(key);
  }
}

const isCut = (box) =>
  box.scrollWidth > box.clientWidth + 1 ||
  (box.scrollHeight > box.clientHeight + 1 && box.closest(".run-output") !== null);

// The browser reports each box once it is laid out, and again when it changes: nothing is measured
// that is folded, and nothing is laid out in order to be measured.
const watcher = new ResizeObserver((entries) => {
  entries
    .filter(({ target: box }) => box.isConnected)
    .map(({ target: box }) => [box, isCut(box)])
    .filter(([box, scrolls]) => scrolls !== (box.getAttribute("tabindex") === "0"))
    .forEach(([box, scrolls]) => mark(box, scrolls));
});
globalThis.watchScrolling = (place) => {
  for (const box of place.querySelectorAll(Object.keys(BOXES).join())) watcher.observe(box);
};
document.fonts.ready.then(() => globalThis.watchScrolling(document));

// A link into a folded block opens it, in browsers that do not do so by themselves.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

window.addEventListener("load", openTarget);
window.addEventListener("hashchange", openTarget);

// Print shows what is folded, in dark ink on white paper. What is wider than a sheet becomes
// smaller, and what is written in a box is seen whole: both are measured on a page that is as wide
// as a sheet for a moment (`data-paper` in the style sheet).
const page = document.documentElement;
const fitting = new URL("dpnotes.print.js", document.currentScript.src);
let closed = [];
let areas = [];
let shrunk = [];
let theme = "light";
window.addEventListener("load", () => import(fitting).catch(() => {}));
window.addEventListener("beforeprint", () => {
  theme = page.dataset.theme;
  page.dataset.theme = "light";
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((block) => (block.open = true));
  page.dataset.paper = "measured";
  areas = [...document.querySelectorAll("textarea")].map((area) => [area, area.style.height]);
  for (const [area] of areas) area.style.height = "0";
  const heights = areas.map(([area]) => area.scrollHeight + 4);
  areas.forEach(([area], n) => (area.style.height = `${heights[n]}px`));
  shrunk = globalThis.fit?.() ?? [];
  delete page.dataset.paper;
});
window.addEventListener("afterprint", () => {
  page.dataset.theme = theme;
  closed.forEach((block) => (block.open = false));
  for (const [area, height] of areas) area.style.height = height;
  for (const part of shrunk) part.style.fontSize = "";
});

// The page of claims: by words, chapter and slip.
function filterClaims(form) {
  const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const group of document.querySelectorAll(".claims-chapter")) {
    const here = !form.chapter.value || group.classList.contains(`chapter-${form.chapter.value}`);
    let left = 0;
    for (const claim of group.querySelectorAll(".claim")) {
      const text = claim.textContent.toLowerCase();
      const fits =
        here &&
        (!form.slips.checked || claim.classList.contains("slip")) &&
        words.every((word) => text.includes(word));
      claim.hidden = !fits;
      left += fits;
    }
    group.hidden = !left;
    shown += left;
  }
  form.querySelector("output").value = `${shown} claims`;
}

for (const form of document.querySelectorAll(".claims-filter")) {
  form.hidden = false;
  form.addEventListener("input", () => filterClaims(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  filterClaims(form);
}

// Visited pages stay readable without network. Not for files opened without a server, nor where the
// browser denies storage.
if (!localStorage.ends && navigator.serviceWorker && location.protocol.startsWith("http")) {
  window.addEventListener("load", () => import("../_run/offline.js").catch(() => {}));
}
