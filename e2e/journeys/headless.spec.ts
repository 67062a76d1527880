/** The headless command on the sample family: both engines, any tile, same bytes; and its error messages. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { OutputHashes } from '../../src/formats/output-hashes';
import { safetensors } from '../../src/inputs/memory-models.test.support';
import type { EvaluateReport } from '../../src/reports/evaluate';
import type { FindBestReport } from '../../src/reports/find-best';
import { frontOf } from '../../src/reports/find-best';
import type { MergeReport } from '../../src/reports/merge';
import { goldenFolder } from '../goldens';
import { treeHashOfFile } from '../tree-hash';
import { expectSampleTies, readSafetensors } from './merged-folder';
import { amalgam, beginning, expect, ROOT, readJson, recipeFile, SAMPLES, test, work } from './studio';

const TIES = `merge_method: ties
base_model: ${SAMPLES}/base
models:
  - model: ${SAMPLES}/base+${SAMPLES}/kitchen
    parameters: { weight: 1.0, density: 0.2 }
  - model: ${SAMPLES}/base+${SAMPLES}/harbour
    parameters: { weight: 1.0, density: 0.2 }
  - model: ${SAMPLES}/workshop
    parameters: { weight: 1.0, density: 0.2 }
`;

test('R60: merges the sample with TIES on both engines to the same bytes, within one ulp of the f64 oracle; what is published is verified, and says nothing of where models lie', async () => {
  const file = recipeFile(TIES);
  const hashes: string[] = [];
  for (const engine of ['webgpu', 'cpu']) {
    const out = join(work, engine);
    const report = join(work, `${engine}.json`);
    const { code, stderr } = await amalgam([
      'merge',
      file,
      '--out',
      out,
      '--engine',
      engine,
      '--report',
      report,
    ]);
    expect(stderr).toContain('merging');
    expect(code).toBe(0);
    const merged = readJson(report) as MergeReport;
    expect(merged.engine).toBe(engine);
    expect(merged.tensors).toHaveLength(56);
    hashes.push(treeHashOfFile(join(out, 'model.safetensors')));
    expect(merged.shards[0]!.hash).toBe(hashes.at(-1));
    for (const input of merged.inputs)
      expect(input.hash).toBe(treeHashOfFile(join(SAMPLES, input.id, input.file)));
  }
  expect(hashes[0]).toBe(hashes[1]);

  const out = join(work, 'webgpu');
  expect(readdirSync(out).sort()).toEqual([
    'README.md',
    'amalgam-hashes.json',
    'config.json',
    'generation_config.json',
    'mergekit_config.yml',
    'model.safetensors',
    'special_tokens_map.json',
    'tokenizer.json',
    'tokenizer_config.json',
  ]);
  const model = readFileSync(join(out, 'model.safetensors'));
  const { compared, onThreshold, canceled } = expectSampleTies(model);
  expect(compared + onThreshold).toBe(1_238_656);
  expect(canceled).toBeLessThan(20);
  expect(onThreshold).toBeLessThan(200);
  const { metadata } = readSafetensors(model);
  expect(metadata.format).toBe('pt');
  expect(metadata.amalgam_recipe).toContain('merge_method: ties');
  // of local files it is not known before they are read
  expect(metadata.amalgam_inputs).toBeUndefined();
  const beside = readJson(out, 'amalgam-hashes.json') as OutputHashes;
  expect(Object.keys(beside.inputs)).toHaveLength(4);
  for (const [path, hash] of Object.entries(beside.outputs))
    expect(treeHashOfFile(join(out, path)), path).toBe(hash);
  expect(readFileSync(join(out, 'tokenizer.json'))).toEqual(
    readFileSync(join(SAMPLES, 'base/tokenizer.json')),
  );

  // R60: no published file reveals the models' folders
  for (const name of ['README.md', 'mergekit_config.yml', 'model.safetensors']) {
    expect(readFileSync(join(out, name), 'latin1'), name).not.toContain(ROOT);
  }
  // verify merges again on the other engine, agrees, and sees one flipped bit
  const same = await amalgam(['verify', out, '--recipe', file, '--engine', 'cpu']);
  expect(same.stdout).toContain('The bytes agree');
  expect(same.code).toBe(0);
  const bytes = Buffer.from(model);
  bytes[bytes.length - 7]! ^= 1;
  writeFileSync(join(out, 'model.safetensors'), bytes);
  const differs = await amalgam(['verify', out, '--recipe', file, '--engine', 'cpu']);
  expect(differs.stdout).toContain('The bytes differ');
  expect(differs.stdout).toMatch(
    /within one rounding in 55\sof 56\stensors.*; model\.\S+ by up to 256\ssteps/,
  );
  expect(differs.code).toBe(1);

  // a recipe that names models below itself publishes these names, and verify publishes them again
  symlinkSync(SAMPLES, join(work, 'models'));
  const below = recipeFile(TIES.replaceAll(SAMPLES, 'models'));
  const relative = join(work, 'relative');
  expect((await amalgam(['merge', below, '--out', relative, '--engine', 'cpu'])).code).toBe(0);
  const again = await amalgam(['verify', relative, '--recipe', below, '--engine', 'cpu']);
  expect(again.stdout).toContain('The bytes agree');
  expect(again.stderr).not.toContain('warning');
  // another recipe only locates the models, and is said to be another; without one the error names the cure first
  const other = recipeFile(TIES.replaceAll(SAMPLES, 'models').replace('density: 0.2', 'density: 0.5'));
  const located = await amalgam(['verify', relative, '--recipe', other, '--engine', 'cpu']);
  expect(located.stderr).toMatch(/is not the recipe that was merged \(first in “.*density: 0\.5.*”\)/);
  expect(located.stdout).toContain('The bytes agree with its recipe');
  const lost = await amalgam(['verify', out, '--engine', 'cpu', '--hub', 'http://127.0.0.1:9']);
  expect(lost.stderr).toContain('give the recipe that was merged, amalgam verify');
  expect(lost.code).toBe(1);
});

test('evaluate: base, adapter and a merge that is never written, alike on both engines', async () => {
  const expected = readJson(SAMPLES, 'expected.json') as {
    texts: { kitchen: { first_64_ids: number[] } };
  };
  const ids = join(work, 'ids.json');
  writeFileSync(ids, JSON.stringify(expected.texts.kitchen.first_64_ids));
  const file = recipeFile(TIES);
  const models = [`${SAMPLES}/base`, `${SAMPLES}/base+${SAMPLES}/kitchen`, file];
  const evaluated = async (engine: string, ...of: string[]) => {
    const report = join(work, `evaluate-${engine}-${of.length}.json`);
    const options = ['--tokens', ids, '--engine', engine, '--report', report];
    const { code, stderr } = await amalgam(['evaluate', ...of, ...options]);
    expect(code, stderr).toBe(0);
    return readJson(report) as unknown;
  };
  const sideBySide = async (engine: string) => {
    const report = (await evaluated(engine, ...models)) as {
      models: { outcomes: { report: EvaluateReport }[] }[];
    };
    return report.models.map(({ outcomes }) => outcomes[0]!.report.perplexity);
  };
  const perplexities = await sideBySide('cpu');
  for (const [i, found] of (await sideBySide('webgpu')).entries())
    expect(Math.abs(found / perplexities[i]! - 1)).toBeLessThan(1e-4);
  // the specialist knows its own text better than the base does; the merge lies between
  const [base, adapter, merged] = perplexities;
  expect(((await evaluated('cpu', file)) as EvaluateReport).perplexity).toBe(merged);
  expect(adapter!).toBeLessThan(merged!);
  expect(merged!).toBeLessThan(base!);
});

test('writes shards with an index that names every tensor', async () => {
  const file = recipeFile(`${TIES}amalgam: { shard_bytes: 1000000 }\n`);
  const out = join(work, 'sharded');
  expect((await amalgam(['merge', file, '--out', out, '--engine', 'cpu'])).code).toBe(0);
  const index = readJson(out, 'model.safetensors.index.json') as {
    weight_map: Record<string, string>;
    metadata: { total_size: number };
  };
  const stored = new Map<string, string>();
  for (const shard of readdirSync(out).filter((name) => name.endsWith('.safetensors'))) {
    for (const name of readSafetensors(readFileSync(join(out, shard))).tensors.keys())
      stored.set(name, shard);
  }
  expect(Object.fromEntries(stored)).toEqual(index.weight_map);
  expect(new Set(stored.values()).size).toBeGreaterThan(2);
  expect(index.metadata.total_size).toBe(1_238_656 * 2);
});

test('says what is wrong in words, ends with a code, and writes nothing', async () => {
  const out = join(work, 'never');
  const unknown = await amalgam(['merge', recipeFile(TIES.replace('ties', 'tiesss')), '--out', out]);
  expect(unknown.code).not.toBe(0);
  expect(unknown.stderr).toContain('tiesss');
  const mismatched = TIES.replace(`${SAMPLES}/workshop`, goldenFolder('mergekit'));
  const plan = await amalgam(['plan', recipeFile(mismatched)]);
  expect(plan.code).not.toBe(0);
  expect(existsSync(out)).toBe(false);
  expect(readdirSync(work)).toEqual(['recipe.yml']);
});

const LORAS = (kitchen = 1, harbour = 0.1) => `merge_method: task_arithmetic
base_model: ${SAMPLES}/base
models:
  - model: ${SAMPLES}/base+${SAMPLES}/kitchen
    parameters: { weight: ${kitchen} }
  - model: ${SAMPLES}/base+${SAMPLES}/harbour
    parameters: { weight: ${harbour} }
`;

/** What the command continues the prompt with where the weights are changed in the recipe. */
async function continued(kitchen: number, harbour: number): Promise<string> {
  return continuedBy(recipeFile(LORAS(kitchen, harbour)));
}

async function continuedBy(file: string): Promise<string> {
  const { code, stdout } = await amalgam(['generate', file, '--prompt', 'Recipe:', '--max-tokens', '12']);
  expect(code).toBe(0);
  return stdout.replace(/^Recipe:/, '').replace(/\n$/, '');
}

test('plan: of a model with an adapter as of a recipe', async () => {
  const { code, stdout } = await amalgam(['plan', `${SAMPLES}/base+${SAMPLES}/kitchen`, '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ clean: true });
});

test('search: the best recipe is written, and beside it every recipe of a front', async () => {
  const texts = ['kitchen', 'workshop'].map((name) => beginning(name, 1500));
  const file = recipeFile(
    `merge_method: task_arithmetic\nbase_model: ${SAMPLES}/base\nmodels:\n- {model: ${SAMPLES}/workshop, parameters: {weight: 1}}\n`,
  );
  const [best, report] = [join(work, 'best.yml'), join(work, 'search.json')];
  const found = await amalgam([
    ...['search', file, '--steps', 'search', '--front', '2', '--budget', '5', '--out', best],
    ...[...texts.flatMap((text) => ['--text', text]), '--report', report],
  ]);
  expect(found.code, found.stderr).toBe(0);
  const { rows } = readJson(report) as FindBestReport;
  const front = frontOf(rows);
  expect(front.length).toBeGreaterThan(0);
  const written = readdirSync(work).filter((name) => /^best-?\d*\.yml$/.test(name));
  expect(written.sort()).toEqual([...front.map((_, i) => `best-${i + 1}.yml`), 'best.yml']);
  for (const name of written) {
    const { code, stderr } = await amalgam(['plan', join(work, name)]);
    expect(code, stderr).toBe(0);
  }
  // another search does not write over one of them
  rmSync(best);
  const again = await amalgam(['search', file, '--front', '2', '--out', best]);
  expect([again.code, existsSync(best)]).toEqual([2, false]);
  expect(again.stderr).toContain('best-1.yml already exists.');
});

test('chat: what is typed is continued, also by other weights; served, each request may set them', async () => {
  const [first, second] = [await continued(1, 0.1), await continued(0.1, 1)];
  expect(first).not.toBe(second);
  const lora = `${SAMPLES}/base+${SAMPLES}/kitchen`;
  const [whole, without] = [await continuedBy(lora), await continuedBy(`${SAMPLES}/base`)];
  const file = recipeFile(LORAS());
  const chat = ['src/cli/amalgam.mjs', 'chat', file, '--max-tokens', '12'];

  const typed = spawn(process.execPath, [...chat, '--text'], { cwd: ROOT, stdio: ['pipe', 'pipe', 'pipe'] });
  typed.stdin.end(
    'Recipe:\n/weight nobody 2\n/weight kitchen 0.1\n/weight kitchen 500\n/weight harbour 1\n/set nonsense 3\n/weight\n/again\n',
  );
  const [written, said] = await Promise.all([text(typed.stdout), text(typed.stderr)]);
  expect(written).toBe(`${first}\n${second}\n`);
  expect(said).toContain('No contributor is called nobody. Contributors: kitchen, harbour.');
  expect(said).toContain('must lie between -100 and 100, not 500. All stays as it was.');
  expect(said).toContain('has no parameter nonsense');
  expect(said).toContain('kitchen = 0.1, harbour = 1\n');
  expect(said).toMatch(
    /^At most [\d.]+.MB of memory for 1.548.tokens: weights [\d.]+.MB of [\d.]+.GB that may stay, LoRA /m,
  );

  const adapted = ['src/cli/amalgam.mjs', 'chat', lora, '--max-tokens', '12'];
  const own = spawn(process.execPath, [...adapted, '--text'], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  own.stdin.end('Recipe:\n/weight kitchen 0\n/again\n/weight kitchen 1\n/again\n');
  expect(await text(own.stdout)).toBe(`${whole}\n${without}\n${whole}\n`);

  const served = spawn(process.execPath, [...chat, '--serve', '0'], { cwd: ROOT });
  try {
    let url: string | undefined;
    for await (const line of createInterface({ input: served.stderr })) {
      url = /^(http\S+) answers/.exec(line)?.[1];
      if (url) break;
    }
    const answer = async (amalgam?: object) => {
      const body = JSON.stringify({ prompt: 'Recipe:', ...(amalgam && { amalgam }) });
      const response = await fetch(`${url}/completions`, { method: 'POST', body });
      const { choices } = (await response.json()) as { choices: { text: string }[] };
      return choices[0]!.text;
    };
    expect(await answer()).toBe(first);
    expect(await answer({ weights: { kitchen: 0.1, harbour: 1 } })).toBe(second);
    expect(await answer()).toBe(first);
  } finally {
    served.kill('SIGINT');
  }
  await once(served, 'exit');
});

test('modules behind the body of an encoder are merged into their folder, verified, and opened again', async () => {
  for (const [name, fill] of [
    ['base', 0],
    ['workshop', 1],
  ] as const) {
    cpSync(join(SAMPLES, name), join(work, name), { recursive: true });
    mkdirSync(join(work, name, '2_Dense'));
    writeFileSync(join(work, name, 'modules.json'), '[]');
    writeFileSync(join(work, name, '2_Dense/model.safetensors'), safetensors({ w: ['F32', [2]] }, fill));
  }
  const recipe = join(work, 'recipe.yml');
  writeFileSync(
    recipe,
    'merge_method: task_arithmetic\nbase_model: base\nmodels: [{model: workshop, parameters: {weight: 1}}]\namalgam: {shard_bytes: 1000000}\n',
  );
  const out = join(work, 'out');
  const merged = await amalgam(['merge', recipe, '--out', out]);
  expect(merged.code, merged.stderr).toBe(0);
  const { tensors } = readSafetensors(readFileSync(join(out, '2_Dense/model.safetensors')));
  const [one] = new Float32Array(new Uint8Array(4).fill(1).buffer);
  expect([...tensors.get('w')!.values]).toEqual([one, one]);
  expect(readFileSync(join(out, 'model.safetensors.index.json'), 'utf8')).not.toContain('2_Dense');
  const same = await amalgam(['verify', out]);
  expect(same.code, same.stdout + same.stderr).toBe(0);
  const again = await amalgam(['plan', out]);
  expect(again.code, again.stderr).toBe(0);
});
