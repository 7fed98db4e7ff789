// The page's Python, outside of a page: runs a program that reads and writes JSON.
import { readFileSync } from "node:fs";
import { loadPyodide } from "../../node_modules/pyodide/pyodide.mjs";

const [program, given] = JSON.parse(readFileSync(0, "utf8"));
const python = await loadPyodide();
python.globals.set("given", JSON.stringify(given));
console.log(python.runPython(program));
