// The service worker: visited pages, search and Python go on without network. The build puts this
// file at the top of the site and fills in what it knows of its files.
//
// Pages and their assets come from the network first, so that nobody reads an old page; without an
// answer, from what is kept. The files of Python are large and named with their hash: kept ones
// first.
const VERSION = "@VERSION@";
const BOOK = /*@BOOK@*/ []; // paths of pages, styles, scripts, fonts
const SHELL = /*@SHELL@*/ []; // those that every page needs, and search
const PYTHON = /*@PYTHON@*/ {}; // path of a file of Python: its hash

const KEPT = `dpnotes-book-${VERSION}`;
const LIBRARY = "dpnotes-python";
const PATIENCE = 4000; // ms for the network, where a kept copy could do
const HOME = self.registration.scope;
const known = new Set(BOOK);

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
  else if (known.has(path)) event.respondWith(fromNetwork(request, path));
});

async function fromLibrary(path) {
  const library = await caches.open(LIBRARY);
  const kept = await library.match(keyOf(path));
  if (kept) return kept;
  const answer = await fetch(HOME + path);
  if (answer.ok) library.put(keyOf(path), answer.clone()).catch(() => {});
  return answer;
}

// The copy of this version, or else of an earlier one.
async function findKept(path) {
  const names = (await caches.keys()).filter((name) => name.startsWith("dpnotes-book-"));
  for (const name of [KEPT, ...names.filter((name) => name !== KEPT)]) {
    const found = await (await caches.open(name)).match(HOME + path);
    if (found) return found;
  }
}

async function fromNetwork(request, path) {
  const asked = fetch(request).then(async (answer) => {
    if (answer.ok && answer.type === "basic" && !answer.redirected) {
      const copy = answer.clone();
      caches
        .open(KEPT)
        .then((cache) => cache.put(HOME + path, copy))
        .catch(() => {});
    }
    return answer;
  });
  const kept = await findKept(path);
  if (!kept) return asked;
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, kept));
  return Promise.race([asked.catch(() => kept), late]);
}

// A page asks to keep: "shell", "book", "everything", or a list of paths.
self.addEventListener("message", (event) => {
  const { keep } = event.data || {};
  const lists = { shell: SHELL, book: BOOK, everything: [...BOOK, ...Object.keys(PYTHON)] };
  const paths = Array.isArray(keep) ? keep : lists[keep];
  if (paths) event.waitUntil(keepAll(paths, keep, event.ports[0]));
});

async function keepAll(paths, what, port) {
  const todo = paths.filter((path) => PYTHON[path] || known.has(path));
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
  if (PYTHON[path])
    return fromLibrary(path).then((answer) => {
      if (!answer.ok) throw new Error(path);
    });
  const cache = await caches.open(KEPT);
  if (await cache.match(HOME + path)) return;
  const answer = await fetch(HOME + path);
  if (!answer.ok) throw new Error(path);
  await cache.put(HOME + path, answer);
}

async function forgetEarlier() {
  for (const name of await caches.keys()) {
    if (name.startsWith("dpnotes-book-") && name !== KEPT) await caches.delete(name);
  }
}
