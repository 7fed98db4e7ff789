// The page's own drawing code, run at build: a figure's JSON on stdin; on stdout how it looks and
// what it says before anybody has moved a slider.
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("draw.js", import.meta.url), "utf8");
const slider = new Function(`${source}; return dpnSlider;`)();
const spec = JSON.parse(readFileSync(0, "utf8")),
  at = slider.start(spec);
const marks = spec.panels.flatMap((panel) => panel.marks);
process.stdout.write(
  JSON.stringify({
    drawings: Object.keys(slider.SIZES).map((size) => ({
      size,
      box: slider.box(spec, size),
      inner: slider.draw(spec, at, size),
    })),
    key: marks
      .filter((mark) => mark.label)
      .map((mark) => ({ ...mark, color: slider.color(mark.color ?? "ink") })),
    says: slider.says(spec, at),
    longest: slider.longest(spec),
  }),
);
