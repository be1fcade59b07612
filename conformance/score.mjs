// Scores the suite's results of one revision, as in "37 of 37 scored scenarios", and sets the exit status:
//   score.mjs <revision> <scored | product> <results folder> <expected failures>
// By the suite's own rule, a scenario passes if it has no check with FAILURE. The exit status is stricter: every
// FAILURE and every WARNING must be expected, and every expected one must happen, so that the list stays accurate.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const suite = fileURLToPath(new URL('.tools/node_modules/@modelcontextprotocol/conformance/', import.meta.url));
const { parse } = createRequire(path.join(suite, 'package.json'))('yaml');

const [revision, kind, results, expectedFile] = process.argv.slice(2);
const expected = new Set(load(expectedFile).server);
const { scenarios, partly = [] } = kind === 'product' ? load(expectedFile) : { scenarios: scored() };

const deviations = [];
const happened = new Set();
let passed = 0;
for (const scenario of scenarios) {
  if (judge(scenario).every((check) => check.status !== 'FAILURE')) passed += 1;
}
const parts = partly.map((scenario) => [scenario, judge(scenario)]);
for (const entry of expected) {
  if (!happened.has(entry)) deviations.push(`${entry}: expected to fail, but it did not`);
}

console.log(`${revision}: ${passed} of ${scenarios.length} ${kind === 'product' ? 'scenarios without fixtures' : 'scored scenarios'}`);
for (const [scenario, checks] of parts) {
  const counted = checks.filter((check) => ['SUCCESS', 'WARNING', 'FAILURE'].includes(check.status));
  console.log(`${revision}: ${counted.filter((check) => !isBad(check)).length} of ${counted.length} checks of ${scenario}`);
}
for (const entry of happened) console.log(`  expected: ${entry}`);
for (const deviation of deviations) console.log(`  deviation: ${deviation}`);
process.exit(deviations.length === 0 ? 0 : 1);

function judge(scenario) {
  const checks = checksOf(scenario);
  for (const check of checks.filter(isBad)) {
    const entry = [scenario, `${scenario}:${check.id}`].find((name) => expected.has(name));
    if (entry) happened.add(entry);
    else deviations.push(`${scenario}:${check.id}: ${check.status}: ${check.errorMessage ?? check.description}`);
  }
  return checks;
}

function isBad(check) {
  return check.status === 'FAILURE' || check.status === 'WARNING';
}

// The suite writes server-<scenario>-<time>/checks.json. A scenario that threw or never ran has no file.
function checksOf(scenario) {
  const folder = readdirSync(results).find((name) => name.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '') === `server-${scenario}`);
  const file = folder && path.join(results, folder, 'checks.json');
  if (file && existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'));
  return [{ id: 'no-results', status: 'FAILURE', description: 'the suite wrote no results' }];
}

function scored() {
  return load(path.join(suite, 'requirements', `${revision}.yaml`)).server;
}

function load(file) {
  return parse(readFileSync(file, 'utf8'));
}
