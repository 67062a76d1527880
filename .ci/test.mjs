/**
 * `npm test`: two phases side by side, the longest begun first; every line says whose it is. What fails ends nothing else.
 * At the end: the test files that took longest, what failed and how, and which phases did; a log that is cut keeps its end.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';

/** Rows of the table of test files. */
const SLOWEST = 20;
/** Lines shown of a failure. */
const ERROR_LINES = 8;
/** Last lines shown of a failed phase that reports no failed test. */
const LAST_LINES = 30;

/** Name and command of each phase. */
const PHASES = [
  ['journeys', 'playwright', 'test'],
  // two at once: what waits in one leaves its core to the other
  [
    'unit',
    'vitest',
    'run',
    '--project',
    'unit',
    '--maxWorkers=2',
    '--outputFile.json=test-results/unit.json',
  ],
  ['browser', 'vitest', 'run', '--project', 'browser', '--outputFile.json=test-results/browser.json'],
  ['gpu', 'vitest', 'run', '--project', 'gpu', '--outputFile.json=test-results/gpu.json'],
  ['types', 'tsc', '--noEmit'],
  ['style', 'biome', 'check', '.'],
];

for (const [phase] of PHASES) rmSync(reportFile(phase), { force: true });
const waiting = [...PHASES];
const ended = (await Promise.all([runWaiting(), runWaiting()])).flat();
const tests = new Map(ended.map(({ phase }) => [phase, testsOf(phase)]));

process.stdout.write(`\n${slowest()}\n`);
for (const { phase, status, lastLines } of ended) {
  const failures = tests.get(phase).filter(({ error }) => error !== undefined);
  for (const { file, name, error } of failures)
    process.stdout.write(`\n${phase} ✗ ${file}\n  ${name}\n${firstLines(error)}\n`);
  if (status !== 0 && failures.length === 0) process.stdout.write(`\n${phase} ✗\n${lastLines.join('\n')}\n`);
}
process.stdout.write('\n');
for (const { phase, seconds, status } of ended)
  process.stdout.write(`${phase}: ${status === 0 ? 'passed' : 'FAILED'} in ${seconds.toFixed(0)} s\n`);
process.exitCode = ended.some(({ status }) => status !== 0) ? 1 : 0;

async function runWaiting() {
  const ended = [];
  for (let phase = waiting.shift(); phase; phase = waiting.shift()) ended.push(await run(phase));
  return ended;
}

/** Runs a phase, its name in front of each line it prints. */
function run([phase, file, ...args]) {
  const began = performance.now();
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  const lastLines = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      process.stdout.write(`${phase} │ ${line}\n`);
      if (lastLines.push(line) > LAST_LINES) lastLines.shift();
    });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status) =>
      resolve({ phase, status, lastLines, seconds: (performance.now() - began) / 1000 }),
    );
  });
}

/** The tests of a phase as its runner reports them: file, name, seconds, and the error of one that failed. */
function testsOf(phase) {
  const path = reportFile(phase);
  if (!existsSync(path)) return [];
  const report = JSON.parse(readFileSync(path, 'utf8'));
  return phase === 'journeys' ? journeysOf(report) : report.testResults.flatMap(testsOfFile);
}

function testsOfFile({ name, startTime, endTime, status, message, assertionResults }) {
  const file = relative(process.cwd(), name);
  const failed = assertionResults.filter((test) => test.status === 'failed');
  return [
    { file, name: '', seconds: (endTime - startTime) / 1000 },
    ...failed.map(({ fullName, failureMessages }) => ({
      file,
      name: fullName,
      seconds: 0,
      error: failureMessages.join('\n'),
    })),
    // it could not be loaded, or what runs before and after its tests failed
    ...(status === 'failed' && failed.length === 0 ? [{ file, name: '', seconds: 0, error: message }] : []),
  ];
}

function journeysOf({ suites = [], errors = [] }) {
  const specsOf = ({ suites = [], specs = [] }) => [...suites.flatMap(specsOf), ...specs];
  return [
    ...suites.flatMap(specsOf).flatMap(({ file, title, ok, tests }) => {
      const results = tests.flatMap((test) => test.results);
      const seconds = results.reduce((sum, { duration }) => sum + duration, 0) / 1000;
      const messages = results.flatMap((result) => result.errors.map(({ message }) => message));
      return {
        file: `e2e/journeys/${file}`,
        name: title,
        seconds,
        ...(ok ? {} : { error: messages.join('\n') }),
      };
    }),
    ...errors.map(({ message }) => ({ file: 'e2e/journeys', name: '', seconds: 0, error: message })),
  ];
}

/** The test files that took longest, as a table. */
function slowest() {
  const files = new Map();
  for (const { file, seconds } of [...tests.values()].flat())
    files.set(file, (files.get(file) ?? 0) + seconds);
  return [...files]
    .sort(([, a], [, b]) => b - a)
    .slice(0, SLOWEST)
    .map(([file, seconds]) => `${seconds.toFixed(1).padStart(7)} s  ${file}`)
    .join('\n');
}

function firstLines(error) {
  return stripVTControlCharacters(error)
    .split('\n')
    .slice(0, ERROR_LINES)
    .map((line) => `    ${line}`)
    .join('\n');
}

function reportFile(phase) {
  return `test-results/${phase === 'journeys' ? 'playwright' : phase}.json`;
}
