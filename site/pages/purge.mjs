// Rewrites the style sheets named on the command line: rules whose names are not among the words on
// stdin go. Variables, fonts and animations stay.
import { readFileSync, writeFileSync } from "node:fs";
import { PurgeCSS } from "purgecss";

const content = [{ raw: readFileSync(0, "utf8"), extension: "html" }];
const css = process.argv.slice(2);
const extractor = (text) => text.split(" ");
for (const sheet of await new PurgeCSS().purge({ content, css, defaultExtractor: extractor })) {
  writeFileSync(sheet.file, sheet.css);
}
