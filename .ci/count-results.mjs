// Sums the three test reports into one line. A test that was skipped counts as failed: nothing may pass by not running.
import { existsSync, readFileSync } from 'node:fs';
import process from 'node:process';

const status = Number(process.argv[2]);
let passed = 0;
let failed = 0;

for (const vitest of ['unit', 'gpu', 'browser'].map((phase) => report(`test-results/${phase}.json`))) {
  if (!vitest) continue;
  passed += vitest.numPassedTests;
  failed += vitest.numTotalTests - vitest.numPassedTests;
  // A file that could not even be loaded has no tests to count.
  failed += vitest.testResults.filter((f) => f.status === 'failed' && f.assertionResults.length === 0).length;
}
const playwright = report('test-results/playwright.json');
if (playwright) {
  const { expected, unexpected, flaky, skipped } = playwright.stats;
  passed += expected;
  failed += unexpected + flaky + skipped;
}
// The install, a check or a whole runner can fail without a single failed test.
if (status !== 0 && failed === 0) failed = 1;

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;

function report(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}
