// Compiles archives of Python with Pyodide: the folder of its files is the argument,
// pairs of paths, from and to, come as JSON on stdin.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const core = process.argv[2];
const { loadPyodide } = await import(pathToFileURL(`${core}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: core });
python.FS.writeFile("/inside.py", readFileSync(new URL("inside.py", import.meta.url)));
const inside = python.runPython("import sys; sys.path.insert(0, '/'); import inside; inside");

for (const [source, target] of JSON.parse(readFileSync(0, "utf8"))) {
  const made = inside.compiled(new Uint8Array(readFileSync(source)), source.split("/").pop());
  const part = `${target}.${process.pid}`; // two builds may do this at once
  writeFileSync(part, made.toJs());
  renameSync(part, target);
  made.destroy();
}
