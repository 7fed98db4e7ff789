// Which sections answer a question: titles, headings, the names of definitions and theorems and
// what people say instead come first; a page ranks as its best section, and a little higher for others.
import MiniSearch from "./minisearch.js";
import { GERMAN, GREEK, STOP } from "./spoken.js";

/** A word as it is compared: without accents, capitals and the s of a plural; nothing for "the". */
export function folded(term) {
  const plain = term.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replaceAll("ß", "ss");
  if (STOP.has(plain)) return null;
  return GREEK.get(plain) ?? plain.replace(/(?<=..[^su])s$/, "");
}

const BETWEEN = /[^\p{L}\p{N}\p{M}]+/u;
const HYPHENED = /[\p{L}\p{N}]+(?:[-‐‑][\p{L}\p{N}]+)+/gu;

/** The words of a text, and those with a hyphen as one: DP-SGD is dp, sgd and dpsgd. */
export function wordsOf(text) {
  const joined = (text.match(HYPHENED) ?? []).map((word) => word.replace(/[-‐‑]/g, ""));
  return [...text.split(BETWEEN), ...joined].filter(Boolean);
}

const OPTIONS = {
  boost: { others: 8, heading: 4, page: 4, names: 3 },
  boostDocument: (_id, _term, stored) => stored.weight ?? 1,
  prefix: (term) => term.length > 3,
  fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  weights: { prefix: 0.5, fuzzy: 0.2 },
};

const FURTHER = 0.1; // of the score of a page's other sections
const ASKED = 3; // times as much for a section that is said to answer this very question
const SHARE = 1.5; // how much it counts that a section has all the words
const AT_ONCE = 40; // sections that are read before the page may do something else
const PART = 4; // letters of a part of a compound, at least

/** The index, made in short tasks; `told` hears which part of it is there. */
export async function indexOf(texts, told = () => {}) {
  const index = new MiniSearch({
    fields: ["page", "heading", "names", "others", "text"],
    storeFields: ["page", "heading", "text", "weight", "others"],
    tokenize: wordsOf,
    processTerm: folded,
    searchOptions: OPTIONS,
  });
  for (let done = 0; done < texts.length; done += AT_ONCE) {
    index.addAll(texts.slice(done, done + AT_ONCE));
    told(Math.min(1, (done + AT_ONCE) / texts.length));
    await new Promise((resolve) => setTimeout(resolve));
  }
  return index;
}

const isThere = (index, term) =>
  index.search(term, { prefix: false, fuzzy: false, tokenize: (text) => [text] }).length > 0;

// A word of the question as words of the book: itself, or as a German word, or as the parts of one.
function understood(index, word) {
  const plain = folded(word);
  if (plain === null) return [];
  if (isThere(index, word)) return [word];
  const english = (part) => GERMAN.get(part) ?? (isThere(index, part) ? part : null);
  if (GERMAN.has(plain)) return GERMAN.get(plain).split(" ");
  for (let at = plain.length - PART; at >= PART; at--) {
    const parts = [plain.slice(0, at), plain.slice(at)].map(english);
    if (parts.every(Boolean)) return parts.join(" ").split(" ");
  }
  return [word];
}

/** The words to look for, each in one spelling: dpsgd for DP-SGD, noise for Rauschen. */
function wanted(index, query) {
  const words = query.match(/[\p{L}\p{N}\p{M}]+(?:[-‐‑][\p{L}\p{N}\p{M}]+)*/gu) ?? [];
  const found = words.flatMap((word) => {
    const joined = word.replace(/[-‐‑]/g, "");
    const one = joined !== word && isThere(index, joined) ? [joined] : word.split(/[-‐‑]/);
    return one.flatMap((part) => understood(index, part));
  });
  const pairs = words.slice(1).map((word, n) => words[n] + word);
  return [
    ...new Set([...found, ...pairs.filter((pair) => pair.length > 4 && isThere(index, pair))]),
  ];
}

const spoken = (text) => text.toLowerCase().split(BETWEEN).filter(Boolean).join(" ");
const phrases = (others) => others.split(";").map(spoken);

/** Pages in order, [{address, title, sections, score}]. What has more of the words counts more. */
export function find(index, query) {
  const words = wanted(index, query);
  const terms = words.length ? words : query.split(BETWEEN).filter(Boolean);
  const look = { tokenize: () => terms, ...(words.length ? {} : { processTerm: (term) => term }) };
  const hits = index.search(query, look).map((hit) => {
    const asked = phrases(hit.others).includes(spoken(query)) ? ASKED : 1;
    return { ...hit, score: asked * hit.score * (hit.queryTerms.length / terms.length) ** SHARE };
  });
  const pages = new Map();
  for (const hit of hits.sort((one, other) => other.score - one.score)) {
    const address = hit.id.split("#")[0];
    const page = pages.get(address) ?? { address, title: hit.page, sections: [], score: hit.score };
    page.score += page.sections.push(hit) > 1 ? FURTHER * hit.score : 0;
    pages.set(address, page);
  }
  return [...pages.values()].sort((one, other) => other.score - one.score);
}
