// Python in the page. Nothing is loaded until `start`, `run` or `call` is called; then a worker
// loads Pyodide and the book's package from this site. One namespace a page.
//
//   available                resolves to true if the site was built with Python
//   start(onProgress, {modules})
//                            resolves when `import dpnotes` has worked; onProgress(text, fraction);
//                            `modules`: names of modules that will be imported, to load along
//   warm(modules)            loads these too if Python is there and does nothing else; never rejects
//   run(code, {onOutput, packages, name})
//                            resolves to {ok, outputs: [{type, data}], error}; never rejects for an
//                            error of the code. `type`: text, html, svg or error. `packages`:
//                            modules to have at hand that the code does not import itself, as
//                            "sklearn"; `name`: what tracebacks call the code
//   call(name, args)         calls a Python function by its dotted name, of the page's namespace or
//                            of a module; args is an array
//   stop()                   ends what is running: Python and all variables are gone
//   reset()                  forgets the variables, Python stays; not while it is off
//   state()                  "off", "starting", "ready" or "busy"
//   onState(listener)        is told of each change, and "deaf" when what was stopped goes on
//   reasonOf(error)          what went wrong, in words for the reader
//
// `run` and `call` reject with a `Stopped` after `stop`, and with a `Broken` if the worker fails.
//
// Where the browser lets a shared worker outlive its page, the next page of the tab finds Python
// started, and begins with no variables; elsewhere each page has a worker of its own. A shared
// worker cannot be ended from outside. It asks now and then for an address that this page has
// made (`leash`); when that is gone, by `stop` or with the page, it interrupts what it runs. What
// does not hear that (one long sum in C) goes on until it ends or its page is closed: from then on
// this page has workers of its own, which can be ended.

const HOME = new URL("./", import.meta.url);

export class Stopped extends Error {
  name = "Stopped";
}
export class Broken extends Error {
  name = "Broken";
  constructor(message, { away = false } = {}) {
    super(message);
    this.away = away; // did a file of this site not come?
  }
}

const facts = fetch(new URL("runtime.json", HOME), { cache: "no-cache" })
  .then((answer) => (answer.ok ? answer.json() : {}))
  .catch(() => ({}));
export const available = facts.then((found) => found.available === true);

const TICKET = "dpnotes-python"; // the name of this tab's Python; where it is, pages start early
const PATIENCE = 2000; // ms for a shared worker to answer
const LONG = 600_000; // ms for one to be loaded: on a slow line, too

let worker = null, // a worker, or the port of a shared one
  alone = false, // did a shared one not answer, or not begin?
  leash = "",
  leaving = null,
  starting = null,
  ends = 0, // how often it has ended
  next = 1,
  current = "off";
const waiting = new Map(); // id of a request: {resolve, reject, onOutput, onProgress, quiet}
const watchers = new Set(); // all who want to see the progress of a start

export const state = () => current;

let listener = () => {};
export const onState = (told) => (listener = told);

function become(state) {
  if (state === current) return;
  current = state;
  listener(state);
}

// Python is gone for this page: terminated, or let go of so that it can be had again.
function end(error, dead = error instanceof Broken || current === "starting") {
  ends++;
  if (worker?.terminate) worker.terminate();
  else if (worker) leaving = leave(worker, dead);
  if (dead) forget();
  worker = starting = null;
  const cut = [...waiting.values()];
  waiting.clear();
  become("off");
  cut.forEach((request) => request.reject(error));
}

// A page that the browser keeps for the way back would go on holding what is running, and half a
// gigabyte for a worker of its own.
addEventListener("pagehide", () => {
  if (current === "busy" || worker?.terminate)
    end(new Stopped("stopped: the page was left"), false);
});

/** Does the shared worker say this in time? */
function says(port, type, patience = PATIENCE) {
  return new Promise((resolve) => {
    port.onmessage = ({ data }) => data.type === type && resolve(true);
    setTimeout(resolve, patience, false);
  });
}

async function leave(port, dead) {
  URL.revokeObjectURL(leash);
  port.postMessage({ action: dead ? "close" : "leave" });
  if (await says(port, "left")) return;
  abandon(port);
  listener("deaf");
}

function abandon(port) {
  port.postMessage({ action: "close" }); // when it hears again
  forget();
  alone = true;
}

// With what this tab keeps; some browsers keep nothing.
function ofTab(action) {
  try {
    return action(sessionStorage);
  } catch {
    return "";
  }
}

const forget = () => ofTab((kept) => kept.removeItem(TICKET));
const ticket = () =>
  ofTab((kept) => {
    if (kept.getItem(TICKET) === null) kept.setItem(TICKET, `${Date.now()}-${Math.random()}`);
    return kept.getItem(TICKET);
  });

function outlives() {
  let asked = false;
  const options = {
    get extendedLifetime() {
      asked = true;
      return false;
    },
  };
  try {
    new SharedWorker("data:text/javascript,close()", options);
  } catch {
    return false;
  }
  return asked;
}

function hear({ data }) {
  const request = waiting.get(data.id);
  if (data.type === "progress") {
    const tell = (watcher) => watcher(data.text, data.fraction);
    if (starting) watchers.forEach(tell);
    else if (request?.onProgress) tell(request.onProgress);
    return;
  }
  if (data.type === "taken") {
    worker = null; // it is the other page's
    return end(new Stopped("another page of this tab has Python now"));
  }
  if (data.type === "loaded") return keepOffline(data.files);
  if (!request) return data.fatal ? end(new Broken(data.message, data)) : undefined;
  if (data.type === "output") {
    if (request.onOutput) request.onOutput(data.output);
    return;
  }
  waiting.delete(data.id);
  if (data.type === "done") request.resolve(data.result);
  else {
    const error = new Broken(data.message, data);
    request.reject(error);
    if (data.fatal) end(error);
  }
  const asked = [...waiting.values()].filter((one) => !one.quiet);
  if (current === "busy" && !asked.length) become("ready");
}

// What was loaded once is there without network; and whoever runs cells gets all pages, unless
// they asked their browser to save data.
function keepOffline(files) {
  if (!navigator.serviceWorker?.controller) return;
  const saving = navigator.connection?.saveData;
  import("./offline.js")
    .then(({ keep }) => {
      keep(files.map((file) => `_run/pyodide/${file}`));
      if (!saving) keep("book");
    })
    .catch(() => {});
}

function ask(action, message = {}, how = {}) {
  return new Promise((resolve, reject) => {
    const id = next++;
    waiting.set(id, { resolve, reject, ...how });
    worker.postMessage({ ...message, id, action, leash });
  });
}

export async function start(onProgress, { modules = [] } = {}) {
  if (onProgress) watchers.add(onProgress);
  try {
    await (starting || (current === "off" ? boot(modules) : null));
  } finally {
    watchers.delete(onProgress);
  }
}

async function boot(modules) {
  become("starting");
  starting = (async () => {
    if (!(await available)) throw new Broken("this copy of the book was built without Python");
    if ((await facts).book !== document.documentElement.dataset.book)
      throw new Broken("the book has changed since this page was loaded; reload the page");
    await leaving;
    const mine = ends;
    const made = await connect();
    if (mine !== ends) {
      if (made.terminate) made.terminate();
      else made.postMessage({ action: "close" });
      throw new Stopped("stopped before it had started");
    }
    worker = made;
    worker.onmessage = hear;
    leash = worker.terminate ? "" : URL.createObjectURL(new Blob(["on"]));
    await ask("start", { modules });
  })();
  const own = starting;
  try {
    await own;
    become("ready");
  } catch (error) {
    if (starting === own) end(error);
    throw error;
  } finally {
    if (starting === own) starting = null;
  }
}

export async function warm(modules) {
  if (current !== "ready") return;
  await ask("warm", { modules }, { quiet: true }).catch(() => {});
}

// A worker, or the port of a shared one. Where a browser denies storage it starts no shared one.
async function connect() {
  const inherited = ofTab((kept) => kept.getItem(TICKET) !== null);
  const name = `${ticket()} ${(await facts).files.dpnotes}`;
  const script = new URL("worker.js", HOME);
  const options = { type: "module", name, extendedLifetime: true };
  const shared = !alone && outlives();
  const made = shared ? new SharedWorker(script, options) : new Worker(script, options);
  if (shared) {
    const failed = new Promise((resolve) => (made.onerror = () => resolve(false)));
    const here = says(made.port, "here", inherited ? 3 * PATIENCE : LONG);
    if (!(await Promise.race([failed, here]))) {
      abandon(made.port);
      return connect();
    }
  }
  const one = made.port || made;
  made.onerror = async (event) => {
    event.preventDefault();
    const broken = event.message ? new Broken(event.message) : await whyNot(script);
    if (worker === one) end(broken);
  };
  return one;
}

async function whyNot(script) {
  const { ok } = await fetch(script, { method: "HEAD" }).catch(() => ({}));
  if (ok) return new Broken("this browser does not start the worker that runs Python");
  return new Broken("the worker that runs Python could not be loaded", { away: true });
}

export async function run(code, { onOutput, onProgress, packages = [], name = "code" } = {}) {
  await start(onProgress);
  become("busy");
  return ask("run", { code, packages, name }, { onOutput, onProgress });
}

export async function call(name, args) {
  await start();
  become("busy");
  const { ok, value, error } = await ask("call", { name, args });
  if (ok) return value;
  throw Object.assign(new Error(`${error.name}: ${error.message}`), { python: error });
}

export async function stop() {
  if (current !== "off") end(new Stopped("stopped: the variables are gone"));
}

export const reset = () => ask("reset");

const NETWORK = /failed to fetch|networkerror|load failed/i; // as browsers say it

export const reasonOf = ({ message, away }) =>
  navigator.onLine === false || away || NETWORK.test(message)
    ? `${message}; without network, only what was loaded here before can be used`
    : message;
