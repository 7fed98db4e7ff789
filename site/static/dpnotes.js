// Three small comforts; every page is complete without them.

// Boxes that scroll sideways can be reached and scrolled with the keyboard, and say what they are.
const BOXES = { ".math-scroll": "Equation", ".bd-article pre": "Code", ".cell_output, .cell_output .output": "Output", ".pst-scrollable-table-container": "Table" };

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
