// Saved outputs through promptfoo's `evaluate` with its echo provider: prints the CPU seconds of the first call
// and of the best of three more, and how many tests passed.
// Usage: node bench/peers/promptfoo_peer.mjs CASES.json .envs/promptfoo
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [path, environment] = process.argv.slice(2);
Object.assign(process.env, {
  PROMPTFOO_CONFIG_DIR: mkdtempSync(join(dirname(path), "promptfoo-")),
  PROMPTFOO_DISABLE_TELEMETRY: "1",
  PROMPTFOO_DISABLE_UPDATE: "1",
  PROMPTFOO_DISABLE_REMOTE_GENERATION: "1",
  PROMPTFOO_CACHE_ENABLED: "false",
  LOG_LEVEL: "error",
});
const require = createRequire(resolve(environment, "package.json"));
const { default: promptfoo } = await import(pathToFileURL(require.resolve("promptfoo")).href);

async function summaryOf(cases) {
  const tests = cases.map(({ output, expected }) => ({
    vars: { output },
    assert: [{ type: "equals", value: expected }],
  }));
  const suite = { providers: ["echo"], prompts: ["{{output}}"], tests, writeLatestResults: false };
  const result = await promptfoo.evaluate(suite, { showProgressBar: false, maxConcurrency: 20, cache: false });
  return result.toEvaluateSummary();
}

const cases = JSON.parse(readFileSync(path, "utf8"));
const spent = [];
let summary;
for (let repeat = 0; repeat < 4; repeat += 1) {
  const start = process.cpuUsage();
  summary = await summaryOf(cases);
  const used = process.cpuUsage(start);
  spent.push((used.user + used.system) / 1e6);
}
console.log(spent[0], Math.min(...spent.slice(1)), summary.stats.successes);
process.exit(0);
