// Turns the slides of a deck: arrows, space, page keys, Home, End, a click on either half of the
// footer; P shows the proof. Each slide gets the largest type that it holds; one that is too full
// for the smallest scrolls.
const LARGEST = 1.3,
  SMALLEST = 0.6;
const slides = [...document.querySelectorAll(".slide")];
let now = 0;

function overflows(content) {
  const wide = [content, ...content.querySelectorAll(".math-scroll, .output, table")];
  return (
    content.scrollHeight > content.clientHeight + 1 ||
    wide.some((box) => box.scrollWidth > box.clientWidth + 1 && box.tagName !== "TABLE")
  );
}

function fitOne(slide) {
  const content = slide.querySelector(".content");
  const holds = (size) => {
    content.style.fontSize = `${size}em`;
    return !overflows(content);
  };
  let low = SMALLEST,
    high = LARGEST;
  const fits = holds(low);
  slide.classList.toggle("scrolls", !fits);
  if (!fits) return (content.tabIndex = 0);
  if (holds(high)) return;
  while (high - low > 0.05) {
    const middle = (low + high) / 2;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  holds(low);
}

function fit() {
  for (const slide of slides) {
    slide.classList.add("measured");
    fitOne(slide);
    slide.classList.remove("measured");
  }
}

function showProof(shown) {
  const behind = slides[now].querySelector(".behind");
  if (!behind) return;
  behind.hidden = !shown;
  slides[now].querySelector(".content").style.display = shown ? "none" : "";
  behind.tabIndex = 0;
  if (shown) behind.focus();
}

function show(number) {
  showProof(false);
  slides[now].classList.remove("now");
  now = Math.min(Math.max(number, 0), slides.length - 1);
  slides[now].classList.add("now");
  history.replaceState(null, "", `#${now + 1}`);
}

function showPlace() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)) || "1");
  const slide = target?.closest(".slide");
  if (!slide) return show(0);
  show(slides.indexOf(slide));
  if (target.closest(".behind")) showProof(true);
}

const FORWARD = ["ArrowRight", "ArrowDown", "PageDown", " "];
const BACK = ["ArrowLeft", "ArrowUp", "PageUp"];
const KEYS = {
  Home: () => show(0),
  End: () => show(slides.length - 1),
  p: () => showProof(slides[now].querySelector(".behind")?.hidden),
};
document.addEventListener("keydown", (event) => {
  const scrolls =
    event.target.closest?.(".behind, .scrolls .content") && /Arrow(Up|Down)/.test(event.key);
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const step = FORWARD.includes(key) - BACK.includes(key);
  const action = step ? () => show(now + step) : KEYS[key];
  if (!action || scrolls || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  action();
});
for (const footer of document.querySelectorAll(".slide > footer")) {
  footer.addEventListener("click", (event) =>
    show(now + (event.clientX < innerWidth / 2 ? -1 : 1)),
  );
}
window.addEventListener("hashchange", showPlace);
window.addEventListener("resize", fit);
document.documentElement.classList.add("js");
document.fonts.addEventListener("loadingdone", fit); // what measuring asks for may come later
document.fonts.ready.then(() => {
  fit();
  showPlace();
});
