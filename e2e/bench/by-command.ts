/** Merges by the headless command, from local folders to a local folder; and by mergekit, of the same folders. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { formatRecipe } from '../../src/formats/recipe-format';
import { type BackendKind, CPU_ADAPTER } from '../../src/reports/backend';
import type { MergeReport } from '../../src/reports/merge';
import { type Case, type Folders, inShards, namesOf, recipeOf, weightFiles } from './cases';
import { diskFloor } from './disk-floor';
import { timeNode, timeProgram } from './processes';
import type { Row } from './rows';

const PROJECT = join(import.meta.dirname, '../..');
const COMMAND = join(PROJECT, 'src/cli/amalgam.mjs');
const BUNDLER = join(PROJECT, 'src/cli/build-command.mjs');

/** The statistics pass, which no verb makes. */
const STATISTICS = join(PROJECT, 'dist-command-bench/bin/statistics.mjs');

/** Has the command built, where its sources are newer, and the program of the statistics pass. */
export async function buildCommand(scratch: string): Promise<void> {
  await timeNode([COMMAND, '--version'], scratch);
  // in a process of its own: what this one has at most is counted to those it starts
  const inputs = {
    statistics: 'e2e/bench/statistics-program.ts',
    thread: 'src/worker/node-thread.ts',
    'foreign-text': 'src/worker/node-foreign-text.ts',
  };
  const bundle = `
    const { bundleForNode } = await import(${JSON.stringify(pathToFileURL(BUNDLER).href)});
    await bundleForNode(${[PROJECT, dirname(STATISTICS), inputs].map((arg) => JSON.stringify(arg))});`;
  await timeNode(['--input-type=module', '--eval', bundle], scratch);
}

/** A comparison by the command, or the statistics pass: nothing is written but what was found. */
export async function lookByCommand(c: Case, folders: Folders, scratch: string): Promise<Row> {
  const [recipe, out, cache] = ['recipe.yml', 'compared', 'cache'].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  for (const old of [out, cache]) rmSync(old, { recursive: true, force: true });
  writeFileSync(recipe, formatRecipe(recipeOf(c, namesOf(folders))));
  const compare = [COMMAND, 'compare', ...folders, '--out', out, '--engine', 'cpu', '--cache', cache];
  try {
    const args = c.job === 'compare' ? compare : [STATISTICS, recipe, cache];
    const { peakBytes, ...spent } = await timeNode(args, scratch);
    const { seconds, read } = diskFloor(weightFiles(c, folders), 0, join(scratch, 'floor'));
    const floor = { what: 'bytes', seconds };
    const what = { name: c.name, way: 'command', engine: `cpu (${CPU_ADAPTER})`, output: '' } as const;
    return { ...what, ...spent, floor, bounds: [], bytes: read, memory: peakBytes };
  } finally {
    for (const old of [recipe, out, cache]) rmSync(old, { recursive: true, force: true });
  }
}

/** One merge by the command, with an empty cache. @param scratch folder that the models are in */
export async function mergeByCommand(
  c: Case,
  engine: BackendKind,
  folders: Folders,
  scratch: string,
): Promise<Row> {
  const [recipe, out, file, cache] = ['recipe.yml', 'by-command', 'report.json', 'cache'].map((name) =>
    join(scratch, name),
  ) as [string, string, string, string];
  for (const old of [out, cache]) rmSync(old, { recursive: true, force: true });
  writeFileSync(recipe, formatRecipe(inShards(recipeOf(c, namesOf(folders)))));
  try {
    const args = ['merge', recipe, '--out', out, '--engine', engine, '--report', file, '--cache', cache];
    const { peakBytes, ...spent } = await timeNode([COMMAND, ...args], scratch);
    const { adapter, stages, shards } = JSON.parse(readFileSync(file, 'utf8')) as MergeReport;
    rmSync(out, { recursive: true });
    const bytes = shards.reduce((sum, shard) => sum + shard.bytes, 0);
    const floor = diskFloor(weightFiles(c, folders), bytes, join(scratch, 'floor'));
    return {
      name: c.name,
      way: 'command',
      engine: `${engine} (${adapter})`,
      ...spent,
      floor: { what: 'bytes', seconds: floor.seconds },
      bounds: [],
      stages,
      output: shards.map(({ hash }) => hash).join(' '),
      bytes: floor.read + floor.written,
      memory: peakBytes,
    };
  } finally {
    for (const old of [recipe, out, file, cache]) rmSync(old, { recursive: true, force: true });
  }
}

/** Seconds that a mergekit takes for the case, from its start to its exit. @param program `program config.yml outdir` */
export async function mergeByMergekit(
  program: string,
  c: Case,
  folders: Folders,
  scratch: string,
): Promise<number> {
  const [recipe, out] = [join(scratch, 'mergekit.yml'), join(scratch, 'by-mergekit')];
  rmSync(out, { recursive: true, force: true });
  writeFileSync(recipe, formatRecipe(recipeOf(c, folders)));
  try {
    return await timeProgram(program, [recipe, out], scratch);
  } finally {
    for (const old of [recipe, out]) rmSync(old, { recursive: true, force: true });
  }
}
