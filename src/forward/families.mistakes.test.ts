/** A deliberate mistake in every kind of block, made in the architecture: the goldens must tell it from what is right. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import type { Architecture, Part } from '../models/architecture';
import { FAMILY_FOLDER, FAMILY_LIMITS, loadFamily, strayWhole } from './families.test.cases';
import { ROOMY } from './runner.test.cases';

const read = async (path: string) => new Uint8Array(readFileSync(path));

/** The architecture with every part of a kind changed. */
const parts =
  <K extends Part['kind']>(kind: K, change: (part: Extract<Part, { kind: K }>) => Part) =>
  (a: Architecture): Architecture => ({
    ...a,
    blocks: a.blocks.map((block) => ({
      ...block,
      steps: block.steps.map((step) => ({
        ...step,
        branches: step.branches.map((branch) =>
          branch.part.kind === kind
            ? { ...branch, part: change(branch.part as Extract<Part, { kind: K }>) }
            : branch,
        ),
      })),
    })),
  });
const withoutKey = <T extends object>(object: T, key: keyof T): T =>
  Object.fromEntries(Object.entries(object).filter(([k]) => k !== key)) as T;

const MISTAKES: readonly [what: string, family: string, change: (a: Architecture) => Architecture][] = [
  [
    'halves rotate instead of neighbors',
    'cohere2',
    parts('attention', (p) => (p.rope ? { ...p, rope: withoutKey(p.rope, 'pairs') } : p)),
  ],
  [
    'heads are normed ahead of the rotation',
    'hunyuan_dense',
    parts('attention', (p) => withoutKey(p, 'normAfterRope')),
  ],
  ['queries of latent attention do not rotate', 'minicpm3', parts('attention', (p) => withoutKey(p, 'rope'))],
  [
    'heads in quarters taken in turn',
    'codegen',
    parts('attention', (p) => ({
      ...p,
      layout: { ...p.layout, query: withoutKey(p.layout.query, 'group') },
    })),
  ],
  ['no gate of attention', 'qwen3_5_text', parts('attention', (p) => withoutKey(p, 'gate'))],
  ['ReLU without the square', 'nemotron', parts('mlp', (p) => ({ ...p, activation: 'relu' }))],
  ['another slope of xIELU', 'apertus', parts('mlp', (p) => ({ ...p, activation: 'relu2' }))],
  ['no bias of the logits', 'phi', (a) => ({ ...a, final: withoutKey(a.final, 'bias') })],
  [
    'shares that do not sum to 1',
    'ernie4_5_moe',
    parts('experts', (p) => ({ ...p, router: withoutKey(p.router, 'normalized') })),
  ],
  [
    'softmax instead of sigmoid',
    'lfm2_moe',
    parts('experts', (p) => ({ ...p, router: { ...p.router, by: 'softmax' } })),
  ],
  [
    'one expert instead of two',
    'ernie4_5_moe',
    parts('experts', (p) => ({ ...p, router: { ...p.router, chosen: 1 } })),
  ],
  [
    'SiLU behind the short convolution',
    'lfm2_moe',
    parts('conv', (p) => ({ ...p, conv: { ...p.conv, silu: true } })),
  ],
  [
    'no bias of the convolution',
    'mamba',
    parts('recurrence', (p) => ({ ...p, conv: withoutKey(p.conv, 'bias') })),
  ],
  ['b and c exchanged', 'mamba2', parts('recurrence', (p) => ({ ...p, b: p.c, c: p.b }))],
  [
    'the gate behind the norm',
    'mamba2',
    parts('recurrence', (p) => ({ ...p, gate: { ...p.gate, first: false } })),
  ],
  ['no delta in the delta rule', 'qwen3_5_text', parts('recurrence', (p) => ({ ...p, rule: 'space' }))],
  ['keys not brought to length 1', 'qwen3_5_text', parts('recurrence', (p) => withoutKey(p, 'unit'))],
  [
    'sizes of neighboring gates exchanged',
    'recurrent_gemma',
    parts('lru', (p) => ({ ...p, projections: p.projections.toReversed() })),
  ],
];

test.each(MISTAKES)('%s: %s', async (_, family, change) => {
  const golden = await loadFamily(`${FAMILY_FOLDER}/${family}`, read);
  const engine = createCpuBackend();
  const { nll } = await strayWhole(golden, engine, ROOMY, change(golden.architecture), false);
  engine.close();
  expect(nll).toBeGreaterThan(5 * FAMILY_LIMITS.nll);
});
