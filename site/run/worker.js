// The worker in which Python runs: of one page, or shared by the pages of a visit one after the
// other (see python.js). It loads nothing but files of this site.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const HOME = new URL("./", import.meta.url);
const CORE = ["pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"];
const OWN = ["reading.py", "standins.py", "shell.py"]; // called page_reading and so on there
const loaded = new Set();
let facts, python, shell;
let id = 0; // of the request that is being answered

let page = self; // whom we answer: of a shared worker the page that came last
let leash = ""; // an address that is there as long as that page wants its answer
let looked = 0;

let asked = self; // the page whose request is being answered
const say = (type, more) => asked === page && page.postMessage({ id, type, ...more });

// Python reads this every few steps; 2 interrupts it, as Ctrl-C does.
const signal = {
  get 0() {
    if (!leash || Date.now() - looked < 300) return 0;
    looked = Date.now();
    const request = new XMLHttpRequest();
    request.open("GET", leash, false);
    try {
      request.send();
      return 0;
    } catch {
      return 2;
    }
  },
  set 0(_) {},
};

// Every fetch is counted, for the bar that the reader sees.
const progress = { got: 0, expected: 1, text: "" };
const plainFetch = self.fetch.bind(self);

let soon = 0; // the page is told so seldom, and yet the last that came before the line stalls
function count(bytes) {
  progress.got += bytes;
  soon ||= setTimeout(tell, 100);
}

function tell() {
  soon = 0;
  say("progress", { text: progress.text, fraction: Math.min(1, progress.got / progress.expected) });
}

// Pyodide waits for ever for a file that does not come: then it is over, and the page is told.
const fail = (message, away = false) => say("failed", { message, away, fatal: true });
self.addEventListener("unhandledrejection", ({ reason }) =>
  fail(String(reason?.message || reason)),
);
if (self.onconnect !== undefined) self.addEventListener("error", ({ message }) => fail(message));

// A browser that checks the hash of a file hands nothing over before all has come. Here each piece
// is counted as it comes, and the hash is checked then.
self.fetch = async (source, { integrity, ...how } = {}) => {
  const file = String(source.url || source)
    .split("/")
    .pop();
  const name = Object.keys(facts?.files || {}).find((one) => facts.files[one] === file) || file;
  const answer = await plainFetch(source, how).catch((error) => {
    fail(`${name} could not be fetched`, true);
    throw error;
  });
  if (!answer.ok) fail(`${name} could not be fetched (${answer.status})`, true);
  if (!answer.ok || !answer.body) return answer;
  const counted = new TransformStream({
    transform(chunk, out) {
      count(chunk.length);
      out.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = answer;
  const whole = new Response(answer.body.pipeThrough(counted), { status, statusText, headers });
  if (integrity) await check(name, whole.clone(), integrity);
  return whole;
};

async function check(name, answer, integrity) {
  const digest = await crypto.subtle.digest("SHA-256", await answer.arrayBuffer());
  if (`sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}` === integrity) return;
  fail(`${name} is not the file that belongs to this page`);
  throw new Error(name);
}

// The packages that must be there before these modules can be imported.
function packagesOf(modules) {
  const found = new Set();
  const add = (name) => {
    if (!facts.files[name] || found.has(name)) return;
    found.add(name);
    facts.depends[name].forEach(add);
  };
  for (const module of modules) {
    const parts = module.split(".");
    for (let n = parts.length; n; n--) {
      const packages = facts.modules[parts.slice(0, n).join(".")];
      if (!packages) continue;
      packages.forEach(add);
      break;
    }
  }
  return [...found].filter((name) => !loaded.has(name));
}

function announce(packages, core = []) {
  const files = [...core, ...packages.map((name) => facts.files[name])];
  const expected = files.reduce((sum, name) => sum + facts.bytes[name], 0);
  const what = core.length ? "Python" : packages.at(-1);
  const text = `Loading ${what} (${Math.ceil(expected / 1e6)} MB)`;
  Object.assign(progress, { got: 0, expected, text });
  say("progress", { text, fraction: 0 });
}

function note(packages, core = false) {
  clearTimeout(soon);
  soon = 0;
  const there = new Set(Object.keys(python.loadedPackages).map((name) => name.toLowerCase()));
  const failed = packages.filter((name) => !there.has(name.toLowerCase()));
  if (failed.length) throw new Error(`could not load ${failed.join(", ")}`);
  packages.forEach((name) => loaded.add(name));
  say("loaded", {
    files: [
      ...(core ? ["pyodide.mjs", ...CORE] : []),
      ...packages.map((name) => facts.files[name]),
    ],
  });
}

async function load(packages) {
  if (!packages.length) return;
  announce(packages);
  await python.loadPackage(packages, {
    messageCallback() {},
    errorCallback() {},
    checkIntegrity: true,
  });
  note(packages);
}

async function start({ modules }) {
  if (shell) {
    await reset();
    await load(packagesOf(modules));
    shell.warm(modules);
    return;
  }
  loaded.clear(); // a start may have been cut short before
  facts = await (await plainFetch(new URL("runtime.json", HOME))).json();
  const base = new URL("pyodide/", HOME).href;
  const sources = Promise.all(
    OWN.map((name) => plainFetch(new URL(name, HOME)).then((answer) => answer.text())),
  );
  const packages = packagesOf([...facts.always, ...modules]);
  announce(packages, CORE);
  python = await loadPyodide({
    indexURL: base,
    packageBaseUrl: base,
    cdnUrl: base,
    lockFileURL: `${base}pyodide-lock.json`,
    packages,
    env: { HOME: "/home/pyodide", MPLBACKEND: "agg", OMP_NUM_THREADS: "1" },
  });
  note(packages, true);
  say("progress", { text: "Starting", fraction: 1 });
  python.FS.mkdirTree("/page");
  for (const [n, text] of (await sources).entries())
    python.FS.writeFile(`/page/page_${OWN[n]}`, text);
  python.runPython(
    "import sys; sys.path.insert(0, '/page'); import dpnotes, page_shell; page_shell.begin()",
  );
  python.setInterruptBuffer(signal); // not before: a start is whole, or there is none
  shell = python.pyimport("page_shell");
  shell.warm(modules);
}

// Python's side answers in JSON whatever happens in it; when it does not, it has broken down, and
// nothing of it is used again.
async function talk(action) {
  try {
    return JSON.parse(await action());
  } catch (error) {
    shell = null;
    throw new Error(
      isFull() ? FULL : `Python broke down and was ended (${error?.message || error})`,
    );
  }
}

// What answers no more after it had no memory left, or has taken all there is, ran out of it.
const FULL = "Python ran out of memory and was ended: use smaller arrays";
let short = false; // was there a MemoryError?
const isFull = () => short || python._module.HEAPU8.length > 0.9 * python._module.getHeapMax();

// Nobody waits for it: a file that does not come is no fault.
async function warm({ modules }) {
  const missing = packagesOf(modules);
  for (const name of missing) {
    const address = new URL(`pyodide/${facts.files[name]}`, HOME);
    const there = await plainFetch(address, { method: "HEAD" }).catch(() => null);
    if (!there?.ok) return;
  }
  await load(missing);
  shell.warm(modules);
}

async function run({ code, packages, name }) {
  const modules = await talk(() => shell.imported(code));
  await load(packagesOf([...modules, ...packages]));
  const tell = (output) => say("output", { output: JSON.parse(output) });
  const done = await talk(() => shell.run(code, name, tell));
  short ||= done.error?.name === "MemoryError";
  return done;
}

async function call({ name, args }) {
  await load(packagesOf([name]));
  return talk(() => shell.call(name, JSON.stringify(args)));
}

const reset = () => talk(() => shell.fresh() ?? "null");

const ACTIONS = { start, warm, run, call, reset };

let last = Promise.resolve();

function listen(to) {
  to.onmessage = ({ data }) => {
    if (data.action === "close") {
      if (to !== page) return;
      to.postMessage({ type: "left" });
      self.close();
    } else last = last.then(() => answer(to, data));
  };
}

async function answer(asker, data) {
  if (asker !== page) return;
  asked = asker;
  ({ id, leash } = data);
  if (data.action === "leave") return say("left");
  try {
    say("done", { result: await ACTIONS[data.action](data) });
  } catch (error) {
    say("failed", {
      message: String(error?.message || error),
      fatal: !shell,
    });
  }
}

if (self.onconnect === undefined) listen(self);
else
  self.onconnect = ({ ports: [port] }) => {
    if (page !== self) page.postMessage({ type: "taken" });
    page = port;
    listen(port);
    port.postMessage({ type: "here" });
  };
