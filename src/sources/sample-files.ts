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

/** The texts of the family, in `public/samples/texts`: held out for evaluation, and for calibration. */
export const SAMPLE_TEXTS: readonly (readonly [file: string, bytes: number])[] = [
  ['common.eval.txt', 20_053],
  ['common.calibration.txt', 60_284],
  ['kitchen.eval.txt', 20_283],
  ['kitchen.calibration.txt', 60_323],
  ['harbour.eval.txt', 20_010],
  ['harbour.calibration.txt', 60_816],
  ['workshop.eval.txt', 20_137],
  ['workshop.calibration.txt', 60_140],
];
