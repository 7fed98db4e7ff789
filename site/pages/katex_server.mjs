// Renders TeX for the build: one JSON request a line on stdin, one JSON answer a line on stdout.
// Strict, so that whatever KaTeX would quietly tolerate is reported to the author.
import { createInterface } from "node:readline";
import katex from "katex";
import groups from "./macros.json" with { type: "json" };

const macros = Object.assign({}, ...Object.values(groups));

function render({ tex, display }) {
  try {
    const options = {
      displayMode: display,
      macros: { ...macros },
      strict: "error",
      throwOnError: true,
    };
    return { html: katex.renderToString(tex, options) };
  } catch (error) {
    return { error: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(render(JSON.parse(line)))}\n`);
}
