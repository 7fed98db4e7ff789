// A statement, an equation, a source or a word of the glossary is shown where it is referred to: on hover, on focus, or
// with a first tap. Escape closes it. The link itself stays what it is.
const DELAY = 250;
const pages = new Map();
const AWAY = 40; // pixels that a finger may scroll before the box closes
let shown = null; // {link, box, top}
let timer = 0;

async function pageOf(address) {
  const url = new URL(address);
  if (url.pathname === location.pathname) return document;
  if (!pages.has(url.pathname)) {
    const text = fetch(url.pathname).then((answer) => answer.text());
    pages.set(
      url.pathname,
      text.then((html) => new DOMParser().parseFromString(html, "text/html")),
    );
  }
  return pages.get(url.pathname);
}

// A copy of what the link leads to, without ids, its links made whole.
async function statement(link) {
  const found = (await pageOf(link.href)).getElementById(decodeURIComponent(link.hash.slice(1)));
  const parts = found?.matches("dt")
    ? [found, found.nextElementSibling]
    : [found?.closest(".proof, .math-block, .citation")];
  if (!parts[0]) return null;
  const box = document.createElement("div");
  const inside = parts[1] ? box.appendChild(document.createElement("dl")) : box;
  inside.append(...parts.map((part) => document.importNode(part, true)));
  for (const gone of box.querySelectorAll(".headerlink, .explanation")) gone.remove();
  for (const one of box.querySelectorAll("[id]")) one.removeAttribute("id");
  for (const one of box.querySelectorAll("a[href]"))
    one.href = new URL(one.getAttribute("href"), link.href);
  return box;
}

function place(link, box) {
  const line = [...link.getClientRects()].at(-1);
  const below = innerHeight - line.bottom > Math.min(box.offsetHeight + 12, line.top);
  box.style.maxHeight = `${(below ? innerHeight - line.bottom : line.top) - 12}px`;
  box.style.left = `${Math.max(8, Math.min(line.left, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${below ? line.bottom + 4 : line.top - box.offsetHeight - 4}px`;
  if (box.scrollHeight > box.clientHeight) box.tabIndex = 0;
}

async function open(link) {
  if (shown?.link === link) return true;
  const box = await statement(link).catch(() => null);
  close();
  if (!box?.showPopover) return false;
  Object.assign(box, { className: "explanation", id: "explanation", popover: "manual" });
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", link.textContent);
  const further = document.createElement("p");
  further.innerHTML = `<a href="${link.href}">Go there</a>`;
  box.append(further);
  link.after(box);
  link.setAttribute("aria-describedby", "explanation");
  box.showPopover();
  place(link, box);
  shown = { link, box, top: topOf(link) };
  return true;
}

// With the focus back on the link, which must not open it again.
function close() {
  if (!shown) return clearTimeout(timer);
  const { link, box } = shown;
  const inside = box.contains(document.activeElement);
  shown = null;
  link.removeAttribute("aria-describedby");
  if (inside) link.focus({ preventScroll: true });
  clearTimeout(timer);
  box.remove();
}

function soon(action) {
  clearTimeout(timer);
  timer = setTimeout(action, DELAY);
}

const explained = (target) => target.closest?.(".bd-article a.explains");
const within = (target) => shown && (shown.link.contains(target) || shown.box.contains(target));
const isAtKeyboard = () => {
  const place = document.activeElement;
  return place.matches(":focus-visible") && Boolean(explained(place) || within(place));
};
let touched = false;
addEventListener(
  "pointerdown",
  (event) => {
    touched = event.pointerType === "touch";
    if (!within(event.target)) close();
  },
  true,
);
addEventListener("pointerover", ({ target, pointerType }) => {
  if (pointerType === "touch") return;
  const link = explained(target);
  if (within(target)) clearTimeout(timer);
  else if (link) soon(() => open(link));
  else if (!isAtKeyboard()) soon(close); // a page that scrolls under a resting mouse closes nothing
});
addEventListener("focusin", ({ target }) => {
  const link = explained(target);
  if (link && target.matches(":focus-visible") && !within(target)) soon(() => open(link));
  else if (!within(target)) close();
});
addEventListener("keydown", ({ key }) => {
  touched = false;
  if (key === "Escape") close();
});
const topOf = (link) => link.getBoundingClientRect().top;
function scrolled() {
  if (!shown) return;
  const away = Math.abs(topOf(shown.link) - shown.top) > AWAY;
  if (touched ? away : !within(document.activeElement)) close();
}
addEventListener("scroll", scrolled, { passive: true });
addEventListener("click", async (event) => {
  const link = explained(event.target);
  if (!link || !touched || within(link)) return;
  event.preventDefault();
  if (!(await open(link))) location.href = link.href;
});
