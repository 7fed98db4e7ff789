// The search page: the pages that `rank.js` finds, each with its best sections and the words there.
import { make } from "../_run/editor.js";
import { find, folded, indexOf, wordsOf } from "./rank.js";

const HOME = new URL("../", import.meta.url);
const MOST = 3; // sections of a page
const AROUND = 24; // words of an excerpt
const box = document.getElementById("search-results");
const asked = (new URLSearchParams(location.search).get("q") ?? "").trim();

/** The stretch of a text with the most of these words, which are marked. */
function excerpt(text, terms) {
  const words = text.split(" ");
  const isHit = words.map((word) => wordsOf(word).map(folded));
  const hits = isHit.map((parts) => parts.find((part) => terms.has(part)));
  let best = 0,
    most = 0;
  for (const [start, hit] of hits.entries()) {
    const kinds = hit ? new Set(hits.slice(start, start + AROUND)).size : 0;
    if (kinds > most) [best, most] = [start, kinds];
  }
  const from = Math.max(0, best - 5);
  const shown = words.slice(from, from + AROUND).flatMap((word, n) => {
    const [, bare, sign] = /^(.*?)([.,;:!?]*)$/.exec(word);
    return [hits[from + n] ? make("mark", {}, bare) : bare, `${sign} `];
  });
  const rest = from + AROUND < words.length ? "…" : "";
  return make("p", { className: "context" }, from ? "… " : "", ...shown, rest);
}

function link(address, text) {
  const url = new URL(address, HOME);
  url.searchParams.set("highlight", asked);
  return make("a", { href: url.href }, text);
}

function item({ address, title, sections }) {
  const found = sections.slice(0, MOST).map((hit) => {
    const terms = new Set(Object.keys(hit.match));
    const name = hit.heading ? [link(hit.id, hit.heading)] : [];
    return make("li", {}, ...name, excerpt(hit.text, terms));
  });
  return make("li", {}, link(address, title), make("ul", {}, ...found));
}

const said = (text) => make("p", { className: "search-summary", aria: { role: "status" } }, text);

function nothing() {
  const terms = make("a", { href: new URL("chapters/notation.html", HOME).href }, "glossary");
  const advice =
    "The book is in English. Try one word that must be there, such as noise, delta or ";
  return [
    said(`No pages for “${asked}”`),
    make("p", {}, advice, "histogram, or look into the contents or the ", terms, "."),
  ];
}

async function show() {
  const told = (part) => box.replaceChildren(said(`Searching … ${Math.round(100 * part)} %`));
  const texts = await fetch(new URL("texts.json", import.meta.url)).then((answer) => answer.json());
  const pages = find(await indexOf(texts, told), asked);
  if (!pages.length) return box.replaceChildren(...nothing());
  const count = pages.length === 1 ? "1 page" : `${pages.length} pages`;
  box.replaceChildren(
    said(`${count} for “${asked}”`),
    make("ol", { className: "search" }, ...pages.map(item)),
  );
}

if (asked) {
  for (const input of document.querySelectorAll('.bd-search-container input[name="q"]'))
    input.value = asked;
  show().catch(() => box.replaceChildren("The search could not be loaded: it needs network once."));
}
