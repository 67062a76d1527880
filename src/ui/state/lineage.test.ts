import { expect, test } from 'vitest';
import type { ModelInfo } from '../../reports/models';
import { sampleModels } from '../worker.test.fixture';
import { lineage } from './roles';

const [base, kitchen, , workshop] = sampleModels as [ModelInfo, ModelInfo, ModelInfo, ModelInfo];
const adapterOf = (baseModel: string): ModelInfo => ({
  ...kitchen,
  adapter: { ...kitchen.adapter!, baseModel },
});
const at = (ref: string): ModelInfo => ({
  ...base,
  ref,
  origin: ref.startsWith('samples/') ? 'sample' : ref.includes('@') ? 'hub' : 'local',
});

test.each([
  ['samples/base', 'samples/base', 'ok'],
  ['org/model', 'org/model@0123abc', 'ok'],
  ['org/model', 'model', 'ok'],
  ['/home/me/model', 'model', 'ok'],
  ['org/model', 'models/model', 'ok'],
  ['/srv/hub/models--org--model/snapshots/0123abc', 'org/model@0123abc', 'ok'],
  ['org/model', 'models--org--model/snapshots/0123abc', 'ok'],
  ['org/model', 'models--other--model/snapshots/0123abc', 'plain'],
  ['org/model', 'other/model@0123abc', 'plain'],
  ['org/model', 'org/model-instruct', 'plain'],
  ['unsloth/model-unsloth-bnb-4bit', 'org/model@0123abc', 'ok'],
  ['org/model-bnb-4bit', 'model', 'ok'],
  ['TheBloke/model-GPTQ', 'org/model@0123abc', 'ok'],
  ['/home/me/model-AWQ', 'model', 'ok'],
  ['mlx-community/model-4bit', 'org/model@0123abc', 'ok'],
  ['unsloth/model', 'org/model@0123abc', 'ok'],
])('an adapter that names %s on the base %s: %s', (parent, ref, tone) => {
  expect(lineage(adapterOf(parent), at(ref)).tone).toBe(tone);
});

test('shapes decide whether an adapter fits, names only hint', () => {
  const wanted = { ...adapterOf('org/other'), weights: { 'layers.#.q_proj.weight': ['8×4'] } };
  const of = (shape: string) => ({ ...at('model'), weights: { 'model.layers.#.q_proj.weight': [shape] } });
  expect(lineage(wanted, of('8×4'))).toMatchObject({ text: 'fits', tone: 'ok' });
  expect(lineage(wanted, of('4×8'))).toMatchObject({ text: 'fits' });
  expect(lineage(wanted, of('8×8'))).toMatchObject({ text: 'of another base', tone: 'warn' });
  const named = { ...wanted, adapter: { ...kitchen.adapter!, baseModel: 'model' } };
  expect(lineage(named, of('8×8')).text).toBe('of another base');
});

test('an adapter that names no base, and one without a base to compare with, are neither good nor bad', () => {
  const { baseModel: _, ...adapter } = kitchen.adapter!;
  expect(lineage({ ...kitchen, adapter }, base).tone).toBe('plain');
  expect(lineage(kitchen, undefined).tone).toBe('plain');
});

test('a checkpoint of another architecture or depth is told apart', () => {
  expect(lineage(workshop, base).tone).toBe('plain');
  expect(lineage({ ...workshop, family: 'gpt2' }, base)).toMatchObject({
    tone: 'warn',
    text: 'gpt2, not llama',
  });
  expect(lineage({ ...workshop, layers: 8 }, base)).toMatchObject({ tone: 'warn', text: '8 layers, not 6' });
});
