/** Tiny models of transformers, family by family: logits and losses whole, in little room, and from a cache, on either engine. */
import { expect } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import type { Backend } from '../backend/backend';
import { parseModelConfig } from '../formats/model-config';
import type { Architecture } from '../models/architecture';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { type FileTensor, type ReadFile, readTensors, values } from './golden.test.fixture';
import { openRunner, type RunnerOptions } from './runner';
import { ROOMY, sourceOf, TIGHT } from './runner.test.cases';

/** A small model for every kind of block that no other stands for; `npm run check:golden -- FOLDER forward2` has all. */
export const FAMILY_FOLDER = goldenFolder('forward2');
export const FAMILY_NAMES = [
  'apertus',
  'codegen',
  'cohere2',
  'deepseek',
  'deepseek_v3',
  'dots1',
  'ernie4_5_moe',
  'gemma3n_shared',
  'gemma4_moe',
  'gemma4_shared',
  'glm',
  'hunyuan_dense',
  'lfm2_moe',
  'mamba',
  'mamba2',
  'minicpm3',
  'nemotron',
  'phi',
  'qwen3_5_moe_text',
  'qwen3_5_text',
  'recurrent_gemma',
] as const;

/** Encoders: src/evaluate/masked.test.cases.ts checks them. */
export const ENCODER_FOLDER = goldenFolder('encoders');
export const ENCODER_NAMES = ['bert', 'distilbert', 'modernbert', 'roberta'] as const;

/** Of one token's loss, and of a logit as a share of the largest. */
export const FAMILY_LIMITS = { nll: 2e-4, logits: 1e-3 };

export interface FamilyGolden {
  architecture: Architecture;
  weights: Map<string, FileTensor>;
  ids: number[];
  logits: Float64Array;
  nll: Float64Array;
}

/** A fixture of forward2: `config.json`, `model.safetensors`, `golden.safetensors`. */
export async function loadFamily(folder: string, read: ReadFile): Promise<FamilyGolden> {
  const text = new TextDecoder().decode(await read(`${folder}/config.json`));
  const golden = readTensors(await read(`${folder}/golden.safetensors`));
  return {
    architecture: resolveArchitecture(parseModelConfig(text, 'config.json')),
    weights: readTensors(await read(`${folder}/model.safetensors`)),
    ids: [...new Int32Array(golden.get('input_ids')!.bytes.buffer)],
    logits: values(golden.get('logits')!),
    nll: values(golden.get('nll')!),
  };
}

/** How far a run strays from the golden. */
export interface Straying {
  nll: number;
  logits: number;
}

/** Losses and logits of a whole text. */
export async function strayWhole(
  golden: FamilyGolden,
  engine: Backend,
  options: RunnerOptions,
  architecture = golden.architecture,
  strict = true,
): Promise<Straying> {
  // an architecture with a mistake may leave tensors without a place
  const weights = strict ? golden.weights : claimedOf(golden.weights, architecture);
  const runner = openRunner(engine, architecture, sourceOf(weights), options);
  const { ids } = golden;
  // a second, shorter sequence beside the first: what runs along one must not run into the other
  const sequences = (from: number) => [
    { ids, from },
    { ids: ids.slice(0, 9), from },
  ];
  const { logits } = await runner.pass({ sequences: sequences(0), output: 'logits' });
  const { losses } = await runner.pass({ sequences: sequences(1), output: 'loss' });
  runner.close();
  return {
    nll: Math.max(worst(losses[0]!, golden.nll), worst(losses[1]!, golden.nll)),
    logits: Math.max(worst(logits[0]!, golden.logits), worst(logits[1]!, golden.logits)) / top(golden.logits),
  };
}

/** The tensors an architecture asks for. */
function claimedOf(weights: Map<string, FileTensor>, architecture: Architecture): Map<string, FileTensor> {
  const asked = new Set(expectedTensors(architecture).map(({ name }) => name));
  return new Map([...weights].filter(([name]) => asked.has(name)));
}

/** Logits of the same text fed in pieces to a cache, in the slot that another was copied to. */
export async function strayCached(golden: FamilyGolden, engine: Backend): Promise<number> {
  const runner = openRunner(engine, golden.architecture, sourceOf(golden.weights), ROOMY);
  const { ids } = golden;
  const cache = runner.openCache(3, ids.length);
  const vocab = golden.logits.length / ids.length;
  let far = 0;
  const feed = async (slot: number, start: number, end: number) => {
    const sequences = [{ ids: ids.slice(start, end), start, slot, from: 0 }];
    const { logits } = await runner.pass({ sequences, output: 'logits', cache });
    far = Math.max(far, worst(logits[0]!, golden.logits.subarray(start * vocab, end * vocab)));
  };
  await feed(2, 0, 7);
  await cache.copy(2, [0, 1], 7);
  const cuts = [7, 8, 9, 21, 22, ids.length];
  for (let i = 0; i + 1 < cuts.length; i++) await feed(1, cuts[i]!, cuts[i + 1]!);
  cache.close();
  runner.close();
  return far / top(golden.logits);
}

/** Losses of the same text where several sequences continue a part of it that is run once, beside one that continues nothing. */
export async function strayBranched(
  golden: FamilyGolden,
  engine: Backend,
  options: RunnerOptions,
): Promise<number> {
  const runner = openRunner(engine, golden.architecture, sourceOf(golden.weights), options);
  const { ids } = golden;
  /** Asks for the losses of the tokens behind ids [from, to). */
  const behind = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => ({ at, id: ids[from + at + 1]! }));
  const last = ids.length - 1;
  const cuts: [number, number][] = [
    [21, last],
    [21, 22],
    [5, 30],
    [5, 9],
    [5, last],
  ];
  const sequences = [
    { ids: ids.slice(0, 21), asks: [{ at: 20, id: ids[21]! }] },
    { ids: ids.slice(0, 5), asks: behind(0, 5) },
    { ids: ids.slice(0, 13), from: 1 },
    ...cuts.map(([from, to]) => ({
      ids: ids.slice(from, to),
      after: from === 21 ? 0 : 1,
      asks: behind(from, to),
    })),
  ];
  const { losses } = await runner.pass({ sequences, output: 'loss' });
  runner.close();
  const wanted = [
    golden.nll.subarray(20, 21),
    golden.nll.subarray(0, 5),
    golden.nll.subarray(0, 12),
    ...cuts.map(([from, to]) => golden.nll.subarray(from, to)),
  ];
  return Math.max(...wanted.map((w, i) => worst(w, losses[i]!)));
}

/** Everything a fixture promises, on one engine. */
export async function checkFamily(folder: string, read: ReadFile, engine: Backend): Promise<void> {
  const golden = await loadFamily(folder, read);
  for (const [name, options] of [
    ['roomy', ROOMY],
    ['tight', TIGHT],
  ] as const) {
    const { nll, logits } = await strayWhole(golden, engine, options);
    expect(nll, `${name} nll`).toBeLessThanOrEqual(FAMILY_LIMITS.nll);
    expect(logits, `${name} logits`).toBeLessThanOrEqual(FAMILY_LIMITS.logits);
    const branched = await strayBranched(golden, engine, options);
    expect(branched, `${name} branched`).toBeLessThanOrEqual(FAMILY_LIMITS.nll);
  }
  expect(await strayCached(golden, engine), 'cached').toBeLessThanOrEqual(FAMILY_LIMITS.logits);
}

function worst(got: ArrayLike<number>, wanted: ArrayLike<number>): number {
  let far = 0;
  for (let i = 0; i < got.length; i++) {
    const d = Math.abs(got[i]! - wanted[i]!);
    // not Math.max: it must not swallow a NaN
    if (!(d <= far)) far = d;
  }
  return far;
}

function top(all: ArrayLike<number>): number {
  return Array.from(all).reduce((most, v) => Math.max(most, Math.abs(v)), 0);
}
