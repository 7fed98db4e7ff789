// Small comforts; every page is complete without them.

// Boxes that scroll sideways can be reached and scrolled with the keyboard, and say what they are.
const BOXES = { ".math-scroll": "Equation", ".bd-article pre": "Code", ".cell_output:not(.run-output), .cell_output .output": "Output", ".pst-scrollable-table-container": "Table" };

function markScrollingBoxes() {
  for (const [selector, name] of Object.entries(BOXES)) {
    for (const box of document.querySelectorAll(selector)) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      for (const [key, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${name}, scrolls sideways`]]) {
        if (scrolls) box.setAttribute(key, value);
        else box.removeAttribute(key);
      }
    }
  }
}

// A link into a folded block opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target && target.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

window.addEventListener("load", markScrollingBoxes);
window.addEventListener("resize", markScrollingBoxes);
document.fonts.ready.then(markScrollingBoxes);
document.addEventListener("toggle", markScrollingBoxes, true);
window.addEventListener("load", openTarget);
window.addEventListener("hashchange", openTarget);

// Print shows what is folded.
let closed = [];
window.addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((block) => (block.open = true));
});
window.addEventListener("afterprint", () => closed.forEach((block) => (block.open = false)));

// The page of claims: by words, chapter and slip.
function filterClaims(form) {
  const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const group of document.querySelectorAll(".claims-chapter")) {
    const here = !form.chapter.value || group.classList.contains(`chapter-${form.chapter.value}`);
    let left = 0;
    for (const claim of group.querySelectorAll(".claim")) {
      const text = claim.textContent.toLowerCase();
      const fits = here && (!form.slips.checked || claim.classList.contains("slip")) && words.every((word) => text.includes(word));
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

// Visited pages stay readable without network. Not for files opened without a server.
if (navigator.serviceWorker && location.protocol.startsWith("http")) {
  window.addEventListener("load", () => import("../_run/offline.js").catch(() => {}));
}
