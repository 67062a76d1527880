/**
 * `npm test`: types, style, unit, WebGPU and browser tests on one core, the journeys on the other; every line says whose
 * it is. What fails ends nothing else. At the end: which phases failed, and the test files that took longest.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

/** Rows of the table of test files. */
const SLOWEST = 20;

/** What runs side by side: of each, phases one after the other, as name and command. */
const LANES = [
  [
    ['types', 'tsc', '--noEmit'],
    ['style', 'biome', 'check', '.'],
    ['unit', 'vitest', 'run', '--project', 'unit', '--outputFile.json=test-results/unit.json'],
    ['gpu', 'vitest', 'run', '--project', 'gpu', '--outputFile.json=test-results/gpu.json'],
    ['browser', 'vitest', 'run', '--project', 'browser', '--outputFile.json=test-results/browser.json'],
  ],
  [['journeys', 'playwright', 'test']],
];

for (const name of ['unit', 'gpu', 'browser', 'playwright']) rmSync(reportFile(name), { force: true });
const ended = (await Promise.all(LANES.map(runLane))).flat();
process.stdout.write(`\n${slowest()}\n\n`);
for (const { phase, seconds, status } of ended)
  process.stdout.write(`${phase}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds.toFixed(0)} s\n`);
process.exitCode = ended.some(({ status }) => status !== 0) ? 1 : 0;

async function runLane(phases) {
  const ended = [];
  for (const phase of phases) ended.push(await run(phase));
  return ended;
}

/** Runs a phase, its name in front of each line it prints. */
function run([phase, file, ...args]) {
  const began = performance.now();
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => process.stdout.write(`${phase} │ ${line}\n`));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) => resolve({ phase, status, seconds: (performance.now() - began) / 1000 }));
  });
}

/** The test files of both runners that took longest, as a table. */
function slowest() {
  const rows = [
    ...['unit', 'gpu', 'browser'].flatMap((phase) =>
      (report(phase)?.testResults ?? []).map(({ name, startTime, endTime }) => ({
        file: relative(process.cwd(), name),
        seconds: (endTime - startTime) / 1000,
      })),
    ),
    ...(report('playwright')?.suites ?? []).map((suite) => ({
      file: `e2e/journeys/${suite.file}`,
      seconds: resultsOf(suite).reduce((sum, { duration }) => sum + duration, 0) / 1000,
    })),
  ];
  return rows
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST)
    .map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`)
    .join('\n');
}

function resultsOf({ suites = [], specs = [] }) {
  return [
    ...suites.flatMap(resultsOf),
    ...specs.flatMap(({ tests }) => tests.flatMap(({ results }) => results)),
  ];
}

function reportFile(name) {
  return `test-results/${name}.json`;
}

function report(name) {
  const path = reportFile(name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}
