import { existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../../src/scratch-folder.test.support';
import { CASES, type Case, type Folders, namesOf, recipeOf, waysOf, weightFiles } from './cases';
import { diskFloor, PIECE_BYTES } from './disk-floor';
import { timeNode, timeProgram } from './processes';
import { bestOf, formatRow, HEADER, type Row } from './rows';

const root = scratchFolder();
const folders = ['base', 'one', 'two', 'three'].map((name) => join(root, name)) as [string, ...string[]];
for (const folder of folders) {
  mkdirSync(folder);
  for (const file of ['config.json', 'model.safetensors']) writeFileSync(join(folder, file), '');
}

const named = (name: string): Case => CASES.find((c) => c.name === name)!;
const foldersRead = (c: Case, models: Folders) =>
  weightFiles(c, models).map((file) => basename(join(file, '..')));

describe('cases of the benchmark', () => {
  it('reads the weights that its recipe names, each once', () => {
    const [base, one, two] = folders as [string, string, string];
    expect(foldersRead(named('qwen-0.5b, linear, 2 models'), [base, one, two])).toEqual(['one', 'two']);
    expect(foldersRead(named('qwen-0.5b, ties, 2 models'), [base, one, two])).toEqual(['base', 'one', 'two']);
    expect(foldersRead(named('qwen-0.5b, task_arithmetic, 3 LoRA'), folders)).toEqual(namesOf(folders));
  });

  it('puts adapters on the base', () => {
    const { models } = recipeOf(named('qwen-0.5b, task_arithmetic, 3 LoRA'), namesOf(folders));
    expect(models?.map(({ model }) => model)).toEqual(['base+one', 'base+two', 'base+three']);
  });

  it('merges files of the disk by the command, from picked folders and from storage', () => {
    expect(waysOf(named('qwen-0.5b, della, 2 models'), 'cpu')).toEqual(['command', 'folder', 'storage']);
    expect(waysOf(named('qwen-0.5b, della, 2 models'), 'webgpu')).toEqual(['command', 'storage']);
    expect(waysOf(named('qwen-0.5b, compare two models'), 'cpu')).toEqual(['command', 'storage']);
  });
});

/** A file without data of its own. */
function file(name: string, bytes: number): string {
  const path = join(root, name);
  writeFileSync(path, '');
  truncateSync(path, bytes);
  return path;
}

describe('the floor on the disk', () => {
  it.each([
    ['files of several lengths', [PIECE_BYTES * 2 + 5, 3, PIECE_BYTES], PIECE_BYTES + 17],
    ['more to write than to read', [10], PIECE_BYTES * 2],
    ['nothing to write', [PIECE_BYTES], 0],
    ['nothing to read', [], 100],
  ])('reads and writes each byte once: %s', (_, lengths, bytes) => {
    const files = lengths.map((length, i) => file(`in-${i}`, length));
    const scratch = join(root, 'out');
    const { read, written, seconds } = diskFloor(files, bytes, scratch);
    expect({ read, written }).toEqual({ read: lengths.reduce((a, b) => a + b, 0), written: bytes });
    expect(seconds).toBeGreaterThan(0);
    expect(existsSync(scratch)).toBe(false);
  });
});

describe('timed programs', () => {
  it('counts the memory and the processor time of a Node program, its threads’ too', async () => {
    const bytes = 2 ** 28;
    const thread = `const until = process.cpuUsage().user + 3e5;
      while (process.cpuUsage().user < until) for (let i = 0; i < 1e6; i++);`;
    const program = `
      const held = Buffer.alloc(${bytes}, 1);
      new (require('node:worker_threads').Worker)(${JSON.stringify(thread)}, { eval: true })
        .once('exit', () => process.exit(held[0] - 1));`;
    const { peakBytes, user, system, seconds } = await timeNode(['--eval', program], process.cwd());
    expect(peakBytes).toBeGreaterThan(bytes);
    expect(user).toBeGreaterThan(0.3);
    expect(system).toBeGreaterThan(0);
    expect(seconds).toBeGreaterThan(0);
  });

  it('fails with what the program said', async () => {
    const failing = ['--eval', 'console.error("no such model"); process.exit(3)'];
    await expect(timeNode(failing, process.cwd())).rejects.toThrow(/ended with 3.*no such model/);
    await expect(timeProgram(process.execPath, failing, process.cwd())).rejects.toThrow(/no such model/);
    await expect(timeProgram('no-such-program', [], process.cwd())).rejects.toThrow(/ENOENT/);
  });
});

const ROW: Row = {
  name: 'shape, ties, 2 models',
  way: 'command',
  engine: 'cpu (WebAssembly)',
  seconds: 8,
  floor: { what: 'bytes', seconds: 2 },
  bounds: [],
  stages: { read: 1, upload: 0, compute: 6, readback: 0.5, write: 2.5 },
  bytes: 4e9,
  user: 11,
  system: 1,
  memory: 600 * 2 ** 20,
  output: '',
};

const cells = (line: string) =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The line by the heads of its columns. */
function read(line: string): Record<string, string> {
  const [heads = ''] = HEADER.split('\n');
  expect(cells(line)).toHaveLength(cells(heads).length);
  return Object.fromEntries(cells(heads).map((head, i) => [head, cells(line)[i]!]));
}

describe('rows of the benchmark', () => {
  it('says ratios to the floor and to mergekit, rates and shares', () => {
    expect(read(formatRow(ROW, 100, 2))).toMatchObject({
      way: 'command, local folders',
      'floor s': '2.00',
      'merge s': '8.00',
      ratio: '4.00',
      '× mergekit': '12.50 (100.00 s)',
      'MB/s': '500',
      readback: '0.500',
      'stages / wall': '125 %',
      MiB: '600',
      bound: 'processor time on 2 cores: 6.00 s, 75 %',
    });
  });

  it('leaves cells empty where nothing was measured', () => {
    const { stages: _, ...silent } = ROW;
    const line = read(formatRow(silent, undefined, 2));
    expect([line['× mergekit'], line.read, line['stages / wall']]).toEqual(['', '', '']);
  });

  it('names the longest bound, and what a floor consists of', () => {
    const copy = { what: 'the folder’s own copy', seconds: 7 };
    const products = { what: 'products', seconds: 1 };
    const line = read(formatRow({ ...ROW, floor: products, bounds: [copy] }, undefined, 2));
    expect(line.bound).toBe('the folder’s own copy: 7.00 s, 88 %');
    expect(line['floor s']).toBe('1.00 (products)');
  });

  it('takes the quickest round, the lowest floor and the most memory', () => {
    const slow = { ...ROW, seconds: 9, floor: { what: 'bytes', seconds: 1.5 }, memory: 2 ** 30 };
    expect(bestOf([slow, ROW])).toEqual({ ...ROW, floor: slow.floor, memory: 2 ** 30 });
  });
});
