// The tests of an answer, run by the Python of the page.

import { call, run, start, stop } from "../_run/python.js";

const LIMIT = 30; // seconds that a check may take

const checker = () =>
  fetch(new URL("check.py", import.meta.url)).then((answer) => {
    if (!answer.ok) throw new Error("the part of this page that runs tests could not be loaded");
    return answer.text();
  });

/** The modules that cells import: their packages are loaded before the clock runs. */
const modulesOf = (cells) => [
  ...new Set(
    cells.flatMap((cell) =>
      [...cell.source.matchAll(/^\s*(?:from|import)\s+([\w.]+)/gm)].map((found) => found[1]),
    ),
  ),
];

/** Start Python if need be, and run the cells of the sheet up to the tests of this answer. */
export async function evaluate(part, cells, onProgress) {
  const packages = modulesOf(cells);
  const warming = `import page_shell\npage_shell.warm(${JSON.stringify(packages)})`;
  await start(onProgress, { modules: packages });
  const loaded = await run(`${await checker()}\n${warming}`, { packages, onProgress });
  if (!loaded.ok) throw new Error(loaded.error?.message ?? "Python did not start");
  onProgress("Running the tests");
  let late = false;
  const clock = setTimeout(() => {
    late = true;
    stop();
  }, LIMIT * 1000);
  try {
    return await call("check", [cells, part.kind === "code" ? `test-${part.id}` : part.id]);
  } catch (error) {
    if (!late) throw error;
    return {
      ok: false,
      message: `stopped after ${LIMIT} seconds: is there a loop that does not end?`,
      needs: [part.id],
    };
  } finally {
    clearTimeout(clock);
  }
}
