/** An output written in parts by several processes, and joined: the bytes of one process. */
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { amalgam, expect, SAMPLES, test, work } from './studio';

/** Thresholds of whole models: every part needs what all tensors say. */
const RECIPE = `merge_method: ties
base_model: base
models:
  - model: base+${SAMPLES}/kitchen
    parameters: { weight: 1.0, density: 0.2 }
  - model: workshop
    parameters: { weight: 1.0, density: 0.2 }
parameters: { semantics: paper }
amalgam: { shard_bytes: 300000 }
`;
const filesOf = (folder: string) =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));

test('three parts, with what they share computed once, are the bytes of one process', async () => {
  for (const name of ['base', 'workshop']) cpSync(join(SAMPLES, name), join(work, name), { recursive: true });
  const recipe = join(work, 'recipe.yml');
  writeFileSync(recipe, RECIPE);
  const out = join(work, 'out');
  const cached = ['--cache', join(work, 'cache'), '--engine', 'cpu'];
  const merge = (...more: string[]) => amalgam(['merge', recipe, ...cached, ...more]);
  const folder = (index: number, of = 3) => `${out}.part-${index}-of-${of}`;

  expect((await merge('--out', out)).code).toBe(0);
  const whole = join(work, 'whole');
  renameSync(out, whole);
  expect(readdirSync(whole).filter((name) => name.endsWith('.safetensors'))).toHaveLength(9);

  const prepared = await merge('--prepare');
  expect(prepared.stderr).toContain('What all parts need is in the cache');
  expect((await amalgam(['join', out])).stderr).toContain('There is no finished part of');
  const kubernetes = { JOB_COMPLETION_INDEX: '0' };
  const first = await amalgam(['merge', recipe, ...cached, '--out', out, '--part', 'auto/3'], kubernetes);
  expect(first.code).toBe(0);
  // measured once, by what came before
  expect(first.stderr).not.toContain('measuring');
  const slurm = { SLURM_ARRAY_TASK_ID: '4', SLURM_ARRAY_TASK_MIN: '0', SLURM_ARRAY_TASK_COUNT: '3' };
  const third = ['merge', recipe, ...cached, '--out', out, '--part', 'auto'];
  expect((await amalgam(third, { ...slurm, SLURM_ARRAY_TASK_STEP: '2' })).code).toBe(0);
  expect(existsSync(folder(3))).toBe(true);
  const early = await amalgam(['join', out]);
  expect(early.code).toBe(1);
  expect(early.stderr).toContain('Part 2 of 3 is not there.');

  // of two processes at one part one wins, and both end
  const two = await Promise.all([1, 2].map(() => merge('--out', out, '--part', '2/3', '--resume')));
  expect(two.map(({ code }) => code)).toContain(0);
  for (const { code, stderr } of two) if (code !== 0) expect(stderr).toMatch(/still writing|already exists/);
  const again = await merge('--out', out, '--part', '2/3', '--resume');
  expect(again.code).toBe(0);
  expect(again.stderr).toContain('is there already');

  // a part of another count, or of another recipe
  expect((await merge('--out', out, '--part', '4/4')).stderr).toContain('is one of 3 parts, not of 4');
  writeFileSync(recipe, RECIPE.replace('density: 0.2', 'density: 0.3'));
  expect((await merge('--out', out, '--part', '2/3')).stderr).toContain('is a part of another merge');
  writeFileSync(recipe, RECIPE);

  // a bit that flipped, and an input that another machine has otherwise
  const shard = join(folder(2), readdirSync(folder(2)).find((name) => name.endsWith('.safetensors'))!);
  const bytes = readFileSync(shard);
  const flipped = Buffer.from(bytes);
  flipped[flipped.length - 1]! ^= 1;
  writeFileSync(shard, flipped);
  expect((await amalgam(['join', out])).stderr).toMatch(/part-2-of-3 is not as it was written/);
  writeFileSync(shard, bytes);
  expect(existsSync(out)).toBe(false);
  const kept = join(work, 'kept');
  renameSync(folder(2), kept);
  const input = join(work, 'workshop/model.safetensors');
  const weights = readFileSync(input);
  const other = Buffer.from(weights);
  other[other.length - 1]! ^= 1;
  writeFileSync(input, other);
  expect((await merge('--out', out, '--part', '2/3')).code).toBe(0);
  const foreign = await amalgam(['join', out]);
  expect(foreign.stderr).toMatch(/workshop\/model\.safetensors is not the same in/);
  writeFileSync(input, weights);
  rmSync(folder(2), { recursive: true });
  renameSync(kept, folder(2));

  const joined = await amalgam(['join', out]);
  expect(joined.stdout).toContain('3 parts joined');
  expect(joined.code).toBe(0);
  expect(filesOf(out)).toEqual(filesOf(whole));
  expect(readdirSync(work).filter((name) => name.includes('.part-'))).toEqual([]);
  expect((await merge('--out', out, '--part', '1/3')).stderr).toContain('already exists');
});

test('what is no set of files beside each other is refused in parts', async () => {
  const recipe = join(work, 'recipe.yml');
  const out = join(work, 'out');
  const models = RECIPE.replaceAll(/(?<=[ ])base(?=[+\n])/g, `${SAMPLES}/base`).replace(
    'workshop',
    `${SAMPLES}/workshop`,
  );
  const refusal = async (text: string, ...more: string[]) => {
    writeFileSync(recipe, text);
    const { code, stderr } = await amalgam(['merge', recipe, '--out', out, '--part', '1/3', ...more]);
    expect(code).toBe(2);
    expect(readdirSync(work)).toEqual(['recipe.yml']);
    return stderr;
  };
  const large = models.replace('shard_bytes: 300000', '');
  expect(await refusal(large)).toContain('has 1 file of weights');
  expect(await refusal(models, '--gguf', 'F16')).toContain('The output is a GGUF file');
  expect(await refusal(models, '--adapter', '--rank', '4')).toContain('The output is a LoRA');
  const stages = `name: half\n${models}---\nmerge_method: linear\nmodels:\n  - model: half\n    parameters: { weight: 1 }\n`;
  expect(await refusal(stages)).toContain('The output is made in stages');
});
