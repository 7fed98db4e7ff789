// Run in the document that pdf.py prints, and in every page when a reader prints it.

// What is wider than the page becomes smaller: a formula, a table or a picture must not be cut.
// All boxes are measured before any is changed: the whole book is laid out anew after each
// change.
const inline = "p, li, dd, .admonition-title";
const boxed = ".math-scroll, .cell_output, .pst-scrollable-table-container";
const tooWide = () =>
  [...document.querySelectorAll(`${boxed}, ${inline}`)].filter(
    (box) => box.scrollWidth > box.clientWidth + 1,
  );

globalThis.fit = () => {
  const made = new Set();
  for (let round = 0; round < 4; round++) {
    const changes = [];
    for (const box of tooWide()) {
      const room = box.clientWidth;
      for (const part of box.matches(inline) ? box.querySelectorAll(".katex") : [box]) {
        const width = part === box ? box.scrollWidth : part.getBoundingClientRect().width;
        if (part !== box && width <= room) continue;
        changes.push([
          part,
          parseFloat(getComputedStyle(part).fontSize) * Math.min(0.97, room / width),
        ]);
      }
    }
    for (const [part, size] of changes) {
      part.style.fontSize = `${size}px`;
      made.add(part);
    }
    if (!changes.length) break;
  }
  return [...made];
};

// The table of contents says on which page each chapter begins.
globalThis.number = (pages) => {
  for (const [key, page] of Object.entries(pages)) {
    document.getElementById(`page-of-${key}`).textContent = page;
  }
};
