/**
 * How a recipe's models become a LoRA: several LoRAs as PEFT's `add_weighted_adapter` calls it, their Gram merge, and the change of
 * any merge cut to a rank (`merged_svd`).
 */
export const COMBINATIONS = [
  'cat',
  'linear',
  'svd',
  'ties',
  'ties_svd',
  'dare_linear',
  'dare_linear_svd',
  'dare_ties',
  'dare_ties_svd',
  'magnitude_prune',
  'magnitude_prune_svd',
  'gram',
  'gram_svd',
  'merged_svd',
] as const;

export type Combination = (typeof COMBINATIONS)[number];

/** Combinations of LoRAs of each merge method; the first is taken where the recipe names none. */
export const COMBINATIONS_OF: Readonly<Record<string, readonly Combination[]>> = {
  task_arithmetic: ['cat', 'linear', 'svd', 'magnitude_prune', 'magnitude_prune_svd'],
  ties: ['ties_svd', 'ties'],
  dare_linear: ['dare_linear_svd', 'dare_linear'],
  dare_ties: ['dare_ties_svd', 'dare_ties'],
  gram: ['gram', 'gram_svd'],
  // one LoRA as it is
  passthrough: ['cat'],
};

/** Everything by which the models of a merge become a LoRA. */
export function combinationsOf(method: string): readonly Combination[] {
  return [...(COMBINATIONS_OF[method] ?? []), 'merged_svd'];
}

/**
 * Parameters of the method that have an effect on this combination, those of a model too; any other changes nothing in a
 * LoRA that is made of LoRAs.
 * @param match of a Gram merge: changes are merged without a text
 */
export function parametersOf(combination: Combination, match?: unknown): readonly string[] {
  if (combination === 'gram' || combination === 'gram_svd') {
    const read = ['density', 'gram', 'embedding', 'calibration', 'calibration_windows', 'calibration_window'];
    return ['weight', 'lambda', 'match', ...(match === 'changes' ? [] : read)];
  }
  const rule = combination.replace('_svd', '');
  const prunes = rule !== 'cat' && rule !== 'linear' && rule !== 'svd';
  return [
    'weight',
    'scale',
    'lambda',
    ...(prunes ? ['density'] : []),
    ...(rule.endsWith('ties') ? ['majority_sign_method'] : []),
  ];
}
