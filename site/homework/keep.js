// What the reader has written, kept in this browser: one entry for each version of an assignment.

const PREFIX = "dpnotes-homework/";

/** The store of one assignment: `data` is {answers, results}; `works`: does the browser keep it? */
export class Store {
  constructor(assignment, version) {
    this.family = `${PREFIX}${assignment}/`;
    this.key = this.family + version;
    this.works = true;
    this.data = this.read(this.key) ?? { answers: {}, results: {} };
  }

  read(key) {
    try {
      const found = JSON.parse(localStorage.getItem(key));
      return found?.answers ? { results: {}, ...found } : null;
    } catch {
      return null;
    }
  }

  write() {
    this.data.at = Date.now();
    try {
      localStorage.setItem(this.key, JSON.stringify(this.data));
      this.works = !localStorage.ends; // see the first script of each page
    } catch {
      this.works = false;
    }
  }

  /** What was written last to another version of this assignment, if anything: {answers, at}. */
  older() {
    try {
      const keys = Object.keys(localStorage).filter(
        (key) => key.startsWith(this.family) && key !== this.key,
      );
      const found = keys
        .map((key) => this.read(key))
        .filter((data) => data && Object.keys(data.answers).length);
      return found.sort((one, other) => (other.at ?? 0) - (one.at ?? 0))[0] ?? null;
    } catch {
      return null;
    }
  }

  /** Another tab with the same page wrote: call back with what is kept now. */
  onChange(listener) {
    addEventListener("storage", (event) => {
      if (event.key !== this.key) return;
      this.data = this.read(this.key) ?? { answers: {}, results: {} };
      listener();
    });
  }
}

/** A short mark of a text, to notice that it has changed. */
export function mark(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash >>> 0).toString(36) + text.length.toString(36);
}
