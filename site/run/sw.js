// The service worker: visited pages, search and Python go on without network. The build puts this
// file at the top of the site and fills in what it knows of its files.
//
// Pages come from the network first, so that nobody reads an old one; without an answer, from what
// is kept. What belongs to a page is of the page's version: files are kept by their hash, one cache
// a version, and a page that is newer than this file gets nothing that was kept. The files of
// Python are large and named with their hash: kept ones first.
const VERSION = "@VERSION@";
const BOOK = /*@BOOK@*/ {}; // path of a page, style, script or font: its hash
const SHELL = /*@SHELL@*/ []; // paths of those that every page needs, and search
const PYTHON = /*@PYTHON@*/ {}; // path of a file of Python: its hash

const HOME = self.registration.scope;
const FAMILY = `dpnotes-book ${HOME} `; // a second copy of the book on this host has its own
const KEPT = FAMILY + VERSION;
const LIBRARY = `dpnotes-python ${HOME}`;
const PATIENCE = 4000; // ms for the network, where a kept copy could do
const pages = new Map(); // id of an open page: the cache of its version; null: of a newer one

const pathOf = (url) => decodeURIComponent(url.split(/[?#]/)[0].slice(HOME.length)) || "index.html";
const keyOf = (path) => `${HOME}${path}?hash=${PYTHON[path]}`;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(begin()));

async function begin() {
  await self.clients.claim();
  const library = await caches.open(LIBRARY);
  const wanted = new Set(Object.keys(PYTHON).map(keyOf));
  for (const request of await library.keys())
    if (!wanted.has(request.url)) await library.delete(request);
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(HOME)) return;
  const path = pathOf(request.url);
  if (PYTHON[path]) event.respondWith(fromLibrary(path));
  else if (BOOK[path])
    event.respondWith(request.mode === "navigate" ? page(event, path) : part(event, path));
});

async function fromLibrary(path) {
  const library = await caches.open(LIBRARY);
  const kept = await library.match(keyOf(path));
  if (kept) return kept;
  const answer = await fetch(HOME + path);
  if (answer.ok) library.put(keyOf(path), answer.clone()).catch(() => {});
  return answer;
}

/** Keep an answer if it is the file of this version; resolves to whether it is. */
async function store(path, answer) {
  const digest = await crypto.subtle.digest("SHA-256", await answer.clone().arrayBuffer());
  const hash = [...new Uint8Array(digest, 0, 8)].map((byte) => byte.toString(16).padStart(2, "0"));
  if (!answer.ok || hash.join("") !== BOOK[path]) return false;
  await (await caches.open(KEPT)).put(HOME + path, answer);
  return true;
}

const match = async (name, path) => (await caches.open(name)).match(HOME + path);

/** The copy of this version, or else of an earlier one, and the name of its cache. */
async function findKept(path) {
  const names = (await caches.keys()).filter((name) => name.startsWith(FAMILY) && name !== KEPT);
  for (const name of [KEPT, ...names]) {
    const answer = await match(name, path);
    if (answer) return { name, answer };
  }
}

async function page({ request, resultingClientId }, path) {
  const kept = await findKept(path);
  const asked = fetch(request);
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  const came = kept ? await Promise.race([asked.catch(() => {}), late]) : await asked;
  const stored = () => store(path, came.clone()).catch(() => false);
  pages.set(resultingClientId, came ? stored().then((same) => same && KEPT) : kept.name);
  return came || kept.answer;
}

async function part({ request, clientId }, path) {
  const name = await pages.get(clientId); // undefined: of workers, and after a pause of this file
  const kept = name && (await match(name, path));
  if (kept) return kept;
  try {
    const answer = await fetch(request);
    store(path, answer.clone()).catch(() => {});
    return answer;
  } catch (error) {
    const found = name === undefined && (await findKept(path));
    if (found) return found.answer;
    throw error;
  }
}

// A page asks to keep: "shell", "book", "everything", or a list of paths.
self.addEventListener("message", (event) => {
  const { keep } = event.data || {};
  const book = Object.keys(BOOK);
  const lists = { shell: SHELL, book, everything: [...book, ...Object.keys(PYTHON)] };
  const paths = Array.isArray(keep) ? keep : lists[keep];
  if (paths) event.waitUntil(keepAll(paths, keep, event.ports[0]));
});

async function keepAll(paths, what, port) {
  const todo = paths.filter((path) => PYTHON[path] || BOOK[path]);
  let done = 0,
    failed = 0;
  const next = async () => {
    for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
      await keepOne(path).catch(() => failed++);
      if (port) port.postMessage({ done: ++done, of: paths.length, failed });
    }
  };
  await Promise.all([next(), next(), next()]);
  if (!failed && (what === "book" || what === "everything")) await forgetEarlier();
}

async function keepOne(path) {
  if (PYTHON[path]) {
    if (!(await fromLibrary(path)).ok) throw new Error(path);
  } else if (!(await match(KEPT, path)))
    if (!(await store(path, await fetch(HOME + path)))) throw new Error(path);
}

async function forgetEarlier() {
  for (const name of await caches.keys())
    if (name.startsWith(FAMILY) && name !== KEPT) await caches.delete(name);
}
