// Which sections answer a question: titles, headings, the names of definitions and theorems and
// what people say instead come first; a page ranks as its best section, and a little higher for others.
import MiniSearch from "./minisearch.js";

const GREEK = new Map(
  Object.entries({ ε: "epsilon", δ: "delta", σ: "sigma", α: "alpha", ρ: "rho" }),
);
const EMPTY = new Set(
  "a an and are be can do does for from how i in is it my of on or that the this to what which with".split(
    " ",
  ),
);

/** A word as it is compared: without accents, capitals and the s of a plural. */
export function folded(term) {
  const plain = term.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  if (EMPTY.has(plain)) return null;
  return GREEK.get(plain) ?? plain.replace(/(?<=..[^su])s$/, "");
}

const OPTIONS = {
  boost: { others: 8, heading: 4, page: 4, names: 3 },
  boostDocument: (_id, _term, stored) => stored.weight ?? 1,
  prefix: (term) => term.length > 3,
  fuzzy: (term) => (term.length > 5 ? 0.2 : false),
  weights: { prefix: 0.5, fuzzy: 0.2 },
};

const FURTHER = 0.1; // of the score of a page's other sections
const ENOUGH = 5; // pages with all words

export function indexOf(texts) {
  const index = new MiniSearch({
    fields: ["page", "heading", "names", "others", "text"],
    storeFields: ["page", "heading", "text", "weight"],
    processTerm: folded,
    searchOptions: OPTIONS,
  });
  index.addAll(texts);
  return index;
}

/** Pages in order, [{address, title, sections, score}]: those with all words before the others. */
export function find(index, query) {
  const pages = new Map();
  for (const combineWith of ["AND", "OR"]) {
    const some = new Map();
    for (const hit of index.search(query, { combineWith })) {
      const address = hit.id.split("#")[0];
      if (pages.has(address)) continue;
      const page = some.get(address) ?? {
        address,
        title: hit.page,
        sections: [],
        score: hit.score,
      };
      page.score += page.sections.push(hit) > 1 ? FURTHER * hit.score : 0;
      some.set(address, page);
    }
    const order = [...some.values()].sort((one, other) => other.score - one.score);
    for (const page of order) pages.set(page.address, page);
    if (pages.size >= ENOUGH) break;
  }
  return [...pages.values()];
}
