/** Makers of mixers around a convolution: LFM2's, and Griffin's recurrent block. */
import type { Vector } from './architecture';
import { needSize, readFlag, readNumber, readSize } from './config-reader';
import { linear, vector } from './resolution-context';
import { at, convolution, or } from './resolved-mixers';
import type { MixerMaker } from './wiring';

/** LFM2's short convolution. */
export const shortConvolution: MixerMaker = (block) => {
  const { config, prefix, hidden } = block;
  const bias = readFlag(config, { field: 'conv_bias', orElse: false });
  const taps = needSize(config, or(3, 'conv_L_cache'));
  return [
    {
      name: 'conv',
      part: {
        kind: 'conv',
        projections: [linear(block, `${prefix}conv.in_proj`, hidden, 3 * hidden, bias)],
        conv: convolution(block, [['conv.conv', hidden]], taps, bias, false),
        output: linear(block, `${prefix}conv.out_proj`, hidden, hidden, bias),
      },
    },
  ];
};

/** Griffin's recurrent block. */
export const recurrentUnit: MixerMaker = (block) => {
  const { config, prefix, hidden, heads } = block;
  const width = readSize(config, at('lru_width')) ?? hidden;
  const of = width / heads;
  const name = `${prefix}temporal_block.`;
  const pair = (what: string, ...shape: number[]): Vector => ({
    tensors: ['input', 'recurrent'].map((gate) => ({
      name: `${name}rg_lru.${gate}_gate_${what}`,
      shape: [heads, of, ...shape],
    })),
  });
  const layer = (module: string, inputs: number, outputs: number) =>
    linear(block, name + module, inputs, outputs, true);
  return [
    {
      name: 'lru',
      part: {
        kind: 'lru',
        projections: [layer('linear_y', hidden, width), layer('linear_x', hidden, width)],
        conv: convolution(
          block,
          [['temporal_block.conv_1d', width]],
          readNumber(config, or(4, 'conv1d_width')) ?? 4,
          true,
          false,
        ),
        width,
        block: of,
        gates: pair('weight', of),
        biases: pair('bias'),
        rates: vector(`${name}rg_lru.recurrent_param`, width),
        output: layer('linear_out', width, hidden),
      },
    },
  ];
};
