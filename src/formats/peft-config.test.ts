import { expect, it } from 'vitest';
import { peftConfigText } from './peft-config';

it('names modules by their ends only where PEFT finds nothing else by them', () => {
  const modules = [
    'visual.blocks.0.attn.qkv',
    'visual.blocks.1.attn.qkv',
    'visual.merger.mlp.0',
    'model.layers.0.self_attn.q_proj',
  ];
  const config = JSON.parse(
    peftConfigText({
      base: 'b',
      modules: modules.map((module) => ({ module, rank: 2 })),
      all: [...modules, 'model.layers.1.self_attn.q_proj'],
      saved: [],
      loraBias: false,
      fanInFanOut: false,
      tied: false,
      task: null,
    }),
  );
  // `0` would be a block of the tower, too, and `q_proj` a module that has no factors
  expect(config.target_modules).toEqual(['qkv', 'visual.merger.mlp.0', 'model.layers.0.self_attn.q_proj']);
});
