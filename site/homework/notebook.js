// An assignment's notebook: its parts, the answers in a file, and the notebook to hand in.
// Nothing here touches the page.

export const FORMAT = "dpnotes answers";
const LARGEST = 30e6; // characters of a file

/** Text with "\n" at the ends of lines and no half characters, which no file could hold. */
export const tidy = (text) => text.replace(/\r\n?/g, "\n").toWellFormed();

const source = (cell) => tidy([cell.source ?? ""].flat().join(""));
const graded = (cell) => cell.metadata?.nbgrader ?? {};
const same = (one, other) => one.replace(/\s/g, "") === other.replace(/\s/g, "");

/** The code cells and answers in order; kind is given, test, code (an answer), plot or words. */
export function partsOf(notebook) {
  const tests = new Map(
    notebook.cells
      .filter((c) => graded(c).locked)
      .map((c) => [graded(c).grade_id, graded(c).points]),
  );
  const parts = [];
  for (const cell of notebook.cells) {
    const { grade_id: name, solution, locked, points } = graded(cell);
    if (cell.cell_type !== "code" && !solution) continue;
    const kind =
      cell.cell_type === "markdown"
        ? "words"
        : locked
          ? "test"
          : !solution
            ? "given"
            : tests.has(`test-${name}`)
              ? "code"
              : "plot";
    parts.push({
      id: cell.id,
      kind,
      source: source(cell),
      points: points ?? tests.get(`test-${name}`),
    });
  }
  return parts;
}

export const isAnswer = (part) => ["code", "plot", "words"].includes(part.kind);

/** The notebook as a file: the one that was given, with the answers (and pictures) put in. */
export function assemble(notebook, answers, pictures = {}) {
  const copy = structuredClone(notebook);
  for (const cell of copy.cells) {
    if (answers[cell.id] !== undefined && answers[cell.id] !== source(cell)) {
      cell.source = answers[cell.id].match(/[^\n]*\n|[^\n]+$/g) ?? [];
    }
    if (pictures[cell.id]) {
      cell.outputs = pictures[cell.id].map((png) => ({
        data: { "image/png": png, "text/plain": ["<Figure>"] },
        metadata: {},
        output_type: "display_data",
      }));
    }
  }
  return `${JSON.stringify(copy, null, 1)}\n`;
}

/** A file of answers, to be read by `readFile`. */
export function save(assignment, version, answers) {
  return `${JSON.stringify({ format: FORMAT, assignment, version, answers }, null, 1)}\n`;
}

const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;

/** {answers, notes} of a saved file or a student's notebook; an Error says why it is refused. */
export function readFile(text, { notebook, assignment, version }) {
  if (text.length > LARGEST)
    throw new Error("this file is too large to be a notebook of this assignment");
  let found;
  try {
    found = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    throw new Error(
      "this file can’t be read: it is neither a notebook (.ipynb) nor answers saved on this page," +
        " or it is damaged",
    );
  }
  if (found?.format === FORMAT) return readSaved(found, notebook, assignment, version);
  if (Array.isArray(found?.cells)) return readNotebook(found, notebook);
  throw new Error(
    "this file holds no answers: it is neither a notebook (.ipynb) nor answers saved on this page",
  );
}

function readSaved(found, notebook, assignment, version) {
  if (found.assignment !== assignment)
    throw new Error(
      `this file holds answers to the assignment “${found.assignment}”, not to this one`,
    );
  const values = Object.entries(found.answers ?? {});
  if (!values.every(([, value]) => typeof value === "string"))
    throw new Error("this file is damaged: its answers are not text");
  const known = new Set(
    partsOf(notebook)
      .filter(isAnswer)
      .map((part) => part.id),
  );
  const answers = Object.fromEntries(
    values.filter(([id]) => known.has(id)).map(([id, value]) => [id, tidy(value)]),
  );
  const notes = [];
  if (found.version !== version)
    notes.push("They were written for another version of this assignment: check them again.");
  const unknown = values.map(([id]) => id).filter((id) => !known.has(id));
  if (unknown.length)
    notes.push(
      `This page has no question for the answers ${unknown.join(", ")}: they were left out.`,
    );
  return { answers, notes };
}

function readNotebook(found, notebook) {
  const cells = found.cells.filter((cell) => cell && typeof cell === "object");
  const texts = cells.map(source);
  const tests = partsOf(notebook).filter((part) => part.kind === "test");
  const here = tests.filter((test) => texts.some((text) => same(text, test.source)));
  if (!here.length) {
    const title = texts.join("\n").match(/^# (.+)$/m)?.[1];
    throw new Error(
      `this is a notebook of something else${title ? ` (“${title}”)` : ""}:` +
        " none of this assignment’s tests is in it",
    );
  }
  const notes = [];
  if (here.length < tests.length)
    notes.push(
      `${plural(tests.length - here.length, "test is", "tests are")} missing in it or changed;` +
        " the tests of this page are kept.",
    );
  const answers = {};
  for (const part of partsOf(notebook).filter(isAnswer)) {
    // a cell that was split keeps its id
    const own = texts.filter((_, i) => String(graded(cells[i]).grade_id) === part.id);
    if (own.length) answers[part.id] = own.join("\n\n");
    else notes.push(`No cell of it is marked as the answer ${part.id}: what is here was kept.`);
  }
  if (!Object.keys(answers).length)
    throw new Error(
      "the cells of this notebook have lost the marks that say which question they answer:" +
        " copy your answers over by hand",
    );
  const released = notebook.cells.map(source);
  const extra = texts.filter(
    (text, i) =>
      cells[i].cell_type === "code" &&
      !graded(cells[i]).grade_id &&
      text.trim() &&
      !released.some((given) => same(given, text)),
  );
  if (extra.length) {
    const first = extra.map((text) => `“${text.trim().split("\n")[0].slice(0, 40)}”`).join(", ");
    notes.push(
      `${plural(extra.length, "code cell", "code cells")} of your own, outside of the answers,` +
        ` ${extra.length === 1 ? "was" : "were"} not taken over (${first}):` +
        " what an answer needs belongs into its box.",
    );
  }
  return { answers, notes };
}
