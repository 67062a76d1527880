import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CASES, type Case, type Folders, namesOf, recipeOf, waysOf, weightFiles } from './cases';

const root = mkdtempSync(join(tmpdir(), 'amalgam-cases-'));
afterAll(() => rmSync(root, { recursive: true }));
const folders = ['base', 'one', 'two', 'three'].map((name) => join(root, name)) as [string, ...string[]];
for (const folder of folders) {
  mkdirSync(folder);
  for (const file of ['config.json', 'model.safetensors']) writeFileSync(join(folder, file), '');
}

const named = (name: string): Case => CASES.find((c) => c.name === name)!;
const read = (c: Case, models: Folders) => weightFiles(c, models).map((file) => basename(join(file, '..')));

describe('cases of the benchmark', () => {
  it('reads the weights that its recipe names, each once', () => {
    const [base, one, two] = folders as [string, string, string];
    expect(read(named('qwen-0.5b, linear, 2 models'), [base, one, two])).toEqual(['one', 'two']);
    expect(read(named('qwen-0.5b, ties, 2 models'), [base, one, two])).toEqual(['base', 'one', 'two']);
    expect(read(named('qwen-0.5b, task_arithmetic, 3 LoRA'), folders)).toEqual(namesOf(folders));
  });

  it('puts adapters on the base', () => {
    const { models } = recipeOf(named('qwen-0.5b, task_arithmetic, 3 LoRA'), namesOf(folders));
    expect(models?.map(({ model }) => model)).toEqual(['base+one', 'base+two', 'base+three']);
  });

  it('merges files of the disk by the command, from picked folders and from storage', () => {
    expect(waysOf(named('qwen-0.5b, della, 2 models'), 'cpu')).toEqual(['command', 'folder', 'storage']);
    expect(waysOf(named('qwen-0.5b, della, 2 models'), 'webgpu')).toEqual(['command', 'storage']);
    expect(waysOf(named('qwen-0.5b, compare two models'), 'cpu')).toEqual(['storage']);
  });
});
