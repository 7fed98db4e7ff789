// What was read, answered and opened, kept in this browser only; and statements shown where they
// are referred to. Every page is complete without it.
const KEY = "dpnotes-course";
const STAY = 3000; // ms that the end of a section is in view before it counts as read
const ROOT = new URL(document.documentElement.dataset.content_root || "./", location.href);
const HERE = nameOf(location.href);
const SHEET = /^chapters\/assignments\//; // a tick there would say: done
const sections = SHEET.test(HERE)
  ? []
  : [...document.querySelectorAll(".bd-article > section > section[id]")];
const LATER = ".second-reading, #exercises, #in-practice, #further-reading"; // of a first reading
const HEADER = "-90px 0px 0px 0px"; // what lies under the bar on top is not seen

function nameOf(address) {
  return new URL(address, location.href).href.split(/[?#]/)[0].slice(ROOT.href.length);
}

function load() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) || { pages: {} };
  } catch {
    return { pages: {} };
  }
}

function note(kind, name, wanted = true) {
  const all = load();
  const page = (all.pages[HERE] ||= {});
  const names = new Set(page[kind]);
  if (wanted) names.add(name);
  else names.delete(name);
  page[kind] = [...names];
  page.sections = sections.filter((one) => !one.matches(LATER)).map(({ id }) => id);
  all.last = HERE;
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {} // no room, or not allowed: then nothing is kept
  show();
}

// In how far a page was read, in a few characters.
function progress({ sections: ids = [], read = [] } = {}) {
  const done = ids.filter((id) => read.includes(id)).length;
  return done && done === ids.length ? "✓" : done ? `${done}/${ids.length}` : "";
}

function show() {
  const { pages, last } = load();
  for (const name in pages) if (SHEET.test(name)) delete pages[name]; // an earlier version's
  const { read = [], opened = [], solved = [] } = pages[HERE] || {};
  for (const link of document.querySelectorAll(
    ".bd-links a[href], .course-map li > p:first-child > a",
  )) {
    const name = nameOf(link.href);
    const text =
      progress(pages[name]) + (name === last && link.closest(".course-map") ? " here last" : "");
    if (text) link.dataset.kept = text.trim();
    else delete link.dataset.kept;
  }
  for (const link of document.querySelectorAll(
    ".bd-article > section > section > h2, .page-toc a[href^='#']",
  )) {
    const id = link.hash ? decodeURIComponent(link.hash.slice(1)) : link.parentElement.id;
    if (read.includes(id)) link.dataset.kept = "✓";
    else delete link.dataset.kept;
  }
  for (const fold of document.querySelectorAll("details.solution, details.question")) {
    const text = solved.includes(fold.id) ? "✓" : opened.includes(fold.id) ? "opened" : "";
    if (text) fold.dataset.kept = text;
    else delete fold.dataset.kept;
  }
  for (const line of document.querySelectorAll(".course-kept")) line.hidden = false;
}

const stays = new Map();
function wait(seen) {
  for (const { target, isIntersecting } of seen) {
    clearTimeout(stays.get(target));
    if (!isIntersecting) continue; // also what left the page, which has no parent
    const { id } = target.parentElement;
    stays.set(
      target,
      setTimeout(() => note("read", id), STAY),
    );
  }
}
const watcher = new IntersectionObserver(wait, { rootMargin: HEADER });
for (const section of sections) watcher.observe(section.lastElementChild);

document.addEventListener(
  "toggle",
  ({ target: fold }) => {
    if (!fold.open || !fold.matches("details.solution, details.question")) return;
    note("opened", fold.id);
    if (fold.matches(".solution") || fold.querySelector(".course-solved")) return;
    const box = document.createElement("p");
    box.innerHTML = '<label><input type="checkbox" class="course-solved"> I had this right</label>';
    const check = box.querySelector("input");
    check.checked = (load().pages[HERE]?.solved || []).includes(fold.id);
    check.addEventListener("change", () => note("solved", fold.id, check.checked));
    fold.append(box);
  },
  true,
);

for (const button of document.querySelectorAll(".course-forget")) {
  button.addEventListener("click", () => {
    localStorage.removeItem(KEY);
    button.nextElementSibling.textContent = "Forgotten.";
    show();
  });
}
show();
