/**
 * Kinds of adapters without a golden of PEFT's outputs: each against the formula of PEFT 0.21's source, on ragged shapes
 * and with every field of its config that changes the result.
 */
import { describe, expect, it } from 'vitest';
import {
  ACTIVATIONS,
  beft,
  bone,
  deft,
  glora,
  lily,
  peanut,
  road,
  SQUARE,
  supertuning,
  TALL,
  tinylora,
  unilora,
} from './adapter-formula-cases';
import { type Case, drawn, type Matrix, MODULE, matrixOf, merged } from './adapter-formulas';
import { largestDifference } from './merge-in-node';

const cases: Readonly<Record<string, Case>> = {
  'RoAd 1': road('road_1', 4, 12),
  'RoAd 2': road('road_2', 6, 12),
  'RoAd 4, one group': road('road_4', 12, 12),
  'RoAd as it is by default': road('road_1', undefined, 128),
  'RoAd without a bias': { ...road('road_2', 2, 6), biasless: true },
  'GLoRA lora': glora('lora', 'lora', 'constant'),
  'GLoRA vector': glora('vector', 'vector', 'vector'),
  'GLoRA constant': glora('constant', 'none', 'none'),
  'GLoRA none': glora('none', 'lora', 'vector'),
  'GLoRA without a bias': glora('lora', 'none', 'none', true),
  'DEFT relu': deft({}, TALL),
  'DEFT qr': deft({ decomposition_method: 'qr' }, TALL),
  'DEFT qr of all outputs, with alpha': deft({ decomposition_method: 'qr', alpha: 5 }, SQUARE),
  'DEFT qr, PaRa': deft({ decomposition_method: 'qr', para: true }, TALL),
  'DEFT relu, [in, out]': deft({ alpha: 3 }, TALL, 'in_out'),
  'DEFT relu, PaRa, [in, out]': deft({ para: true }, TALL, 'in_out'),
  ...Object.fromEntries(Object.keys(ACTIVATIONS).map((act) => [`PEANuT ${act}`, peanut(act, 1, 1)])),
  'PEANuT without layers': peanut('relu', 0, 0.5),
  'PEANuT of two layers': peanut('tanh', 2, 2),
  Super: supertuning(0),
  Supra: supertuning(2),
  'Uni-LoRA': unilora(),
  'Uni-LoRA, [in, out]': unilora('in_out'),
  'TinyLoRA, a vector each': tinylora(0),
  'TinyLoRA, one vector': tinylora(1),
  'TinyLoRA, [in, out]': tinylora(0.1, 'in_out'),
  'Lily of one B': lily(1),
  'Lily of one B, scaled': lily(0.5),
  'Bone, ragged': bone(7, 5, 3, false),
  'Bone, bat': bone(6, 9, 3, true),
  BEFT: beft(),
};

describe('kinds without a golden, by the formulas of PEFT 0.21', () => {
  it.each(Object.entries(cases))('%s', async (_, the) => {
    const { before, after } = await merged(the);
    const near = (name: string, expected: Matrix) => {
      const values = after.get(name)!.values;
      expect(largestDifference(values, Float32Array.from(expected.flat())).relative, name).toBeLessThan(1e-6);
    };
    const { shape, values } = before.get(`${MODULE}.weight`)!;
    const W = matrixOf({ shape, values: [...values] });
    near(`${MODULE}.weight`, the.weight(W));
    const bias = before.get(`${MODULE}.bias`);
    if (bias) {
      const b = [...bias.values].map((x) => [x]);
      near(`${MODULE}.bias`, the.bias?.(b, W) ?? b);
    }
  });

  it('a weight that an adapter of biases leaves alone keeps its bytes', async () => {
    const { before, after } = await merged(cases.BEFT!);
    expect(after.get(`${MODULE}.weight`)!.bytes).toEqual(before.get(`${MODULE}.weight`)!.bytes);
  });
});

describe('what no weight can be', () => {
  const without = (the: Case, ...parts: string[]): Case => ({
    ...the,
    parts: Object.fromEntries(Object.entries(the.parts).filter(([name]) => !parts.includes(name))),
  });
  const refused: [string, Case, RegExp][] = [
    [
      'a router',
      { ...lily(1), parts: { 'lily_A.weight': drawn(3, 5), 'lily_B.weight': drawn(6, 7) } },
      /2 factors/,
    ],
    ['TinyLoRA without projections', without(tinylora(0), 'tinylora_P'), /save_projection/],
    [
      'TinyLoRA of another draw',
      { ...tinylora(0), config: { projection_seed: 1 } },
      /its seed does not give/,
    ],
    ['Super without places', without(supertuning(0), 'supertuning_indices'), /save_precomputed_indices/],
    ['a bias for none', { ...beft(), biasless: true }, /which has none/],
    [
      'RoAd of groups that do not divide',
      { ...road('road_1', 4, 12), config: { group_size: 5 } },
      /groups of 5/,
    ],
    ['RoAd of an unknown variant', { ...road('road_1', 4, 12), config: { variant: 'road_3' } }, /road_3/],
    [
      'RoAd on [in, out]',
      { ...road('road_1', 4, 12), stored: 'in_out', config: { group_size: 4, fan_in_fan_out: true } },
      /stored as \[in, out\]/,
    ],
    ['PEANuT of an unknown activation', { ...peanut('relu', 0, 1), config: { act_fn: 'xielu' } }, /xielu/],
    ['PEANuT that lacks a layer', { ...peanut('relu', 0, 1), config: { depth: 1 } }, /layer 0/],
    ['DEFT that lacks R', without(deft({}, TALL), 'deft_R'), /lacks deft_R/],
    ['DEFT of an unknown decomposition', deft({ decomposition_method: 'svd' }, TALL), /svd/],
    ...(
      [
        ['PSOFT', /signs are not in the file/],
        ['ADAMSS', /groups of outputs/],
        ['FROD', /as large as the weight/],
        ['SHADOW', /a second network/],
        ['CARTRIDGE', /not to a weight/],
      ] as const
    ).map(([type, words]): [string, Case, RegExp] => [type, { ...beft(), type }, words]),
  ];
  it.each(refused)('%s', async (_, the, words) => {
    await expect(merged(the)).rejects.toThrow(words);
  });

  it('Uni-LoRA without its indices', async () => {
    const only = without(
      unilora(),
      'unilora_indices_A',
      'unilora_indices_B',
      'unilora_scales_A',
      'unilora_scales_B',
    );
    await expect(merged(only)).rejects.toThrow(/save_indices/);
  });
});
