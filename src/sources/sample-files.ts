/** The sample family: every file of every model with its size in bytes, checked against `public/samples` by a test. */
export const SAMPLE_FILES: ReadonlyMap<string, readonly (readonly [path: string, bytes: number])[]> = new Map(
  [
    [
      'samples/base',
      [
        ['config.json', 773],
        ['generation_config.json', 105],
        ['model.safetensors', 2_483_296],
        ['special_tokens_map.json', 48],
        ['tokenizer.json', 54_731],
        ['tokenizer_config.json', 244],
      ],
    ],
    [
      'samples/kitchen',
      [
        ['adapter_config.json', 1_167],
        ['adapter_model.safetensors', 459_128],
      ],
    ],
    [
      'samples/harbour',
      [
        ['adapter_config.json', 1_167],
        ['adapter_model.safetensors', 459_128],
      ],
    ],
    [
      'samples/workshop',
      [
        ['config.json', 773],
        ['generation_config.json', 105],
        ['model.safetensors', 2_483_296],
        ['special_tokens_map.json', 48],
        ['tokenizer.json', 54_731],
        ['tokenizer_config.json', 244],
      ],
    ],
  ],
);
