/** Parameter specs that several methods share, so that a label or a bound is written once. */
import type { BooleanSpec, ChoiceSpec, DeltaPreset, MergeMethod, NumberSpec } from '../method';
import type { ResolvedParameters } from '../plan/plan';

/** What tells most of a method that drops changes. */
export const dropped = {
  metric: 'mergedSparsity',
  why: 'It drops changes: how many weights stay at the base is what its settings decide, layer by layer.',
} as const;

export const weight: NumberSpec = {
  kind: 'number',
  label: 'weight',
  help: 'How strongly this model counts. Negative weights subtract what the model learned.',
  min: -100,
  max: 100,
  slider: { min: -1, max: 2, step: 0.01 },
};

export const density: NumberSpec = {
  kind: 'number',
  label: 'density',
  help: 'Share of this model’s changes that is kept, in every tensor.',
  default: 1,
  min: 0,
  max: 100,
  cap: 1,
  slider: { min: 0, max: 1, step: 0.01 },
};

/**
 * Density of a method that trims, with what a form begins with: 0.2 for TIES (Yadav et al. 2023, where there is no validation
 * set), 0.9 for breadcrumbs (Davari and Belilovsky 2024), 0.5 for DARE and DELLA (mergekit's examples).
 */
export function trimmingDensity(recommended: number): NumberSpec {
  return { ...density, recommended };
}

export const gamma: NumberSpec = {
  kind: 'number',
  label: 'γ',
  help: 'Share of the largest changes that is dropped as outliers.',
  default: 0.01,
  min: 0,
  max: 1,
  slider: { min: 0, max: 0.2, step: 0.001 },
};

export const epsilon: NumberSpec = {
  kind: 'number',
  label: 'ε',
  help: 'How far the probability of being kept ranges below and above the density, from the smallest to the largest change of a row.',
  default: 0.15,
  min: 0,
  max: 0.5,
  slider: { min: 0, max: 0.5, step: 0.01 },
};

export const lambda: NumberSpec = {
  kind: 'number',
  label: 'λ',
  help: 'Scales the merged change before it is added to the base. auto: the best on calibration text, by perplexity.',
  default: 1,
  auto: true,
  min: -100,
  max: 100,
  slider: { min: 0, max: 2, step: 0.01 },
};

export const singularRank: NumberSpec = {
  kind: 'number',
  label: 'rank',
  help: 'Most singular directions looked for in a large matrix. Time grows with its square.',
  default: 256,
  min: 1,
  max: 4096,
  integer: true,
  extension: true,
};

/** Where the changes of a matrix are kept and elected; KnOTS, Stoica et al. 2025. */
export const space: ChoiceSpec<'weights' | 'knots'> = {
  kind: 'choice',
  label: 'space',
  help: 'knots: in a matrix, what is kept and elected are coordinates along the singular directions of all changes, not weights. In our table TIES gets 1–14 % better, DARE up to 16 % worse. Of large full fine-tunes only the 256 strongest directions.',
  default: 'weights',
  extension: true,
  choices: [
    { value: 'weights', label: 'weights' },
    { value: 'knots', label: 'KnOTS: shared directions' },
  ],
};

/** What measures or reads in the space of the weights does not go with another. */
export function checkSpace(p: ResolvedParameters) {
  if (p.space !== 'knots' || (p.semantics !== 'paper' && p.selector !== 'importance')) return undefined;
  const other = p.semantics === 'paper' ? 'semantics: paper' : 'selector: importance';
  return {
    reason: `space: knots has no place with ${other}, which looks at weights`,
    remedy: 'Set semantics: mergekit or peft and selector: method, or space: weights.',
  };
}

export const interpolationFactor: NumberSpec = {
  kind: 'number',
  label: 't',
  help: 'Where between the two models: 0 is the base, 1 the other one; values beyond extrapolate along the arc.',
  min: -100,
  max: 100,
  slider: { min: 0, max: 1, step: 0.01 },
};

export function normalize(
  byDefault: boolean,
  help = 'Divide by the sum of the weights that took part.',
): BooleanSpec {
  return { kind: 'boolean', label: 'normalize', help, default: byDefault };
}

/** Division in methods with named semantics. */
export function normalizeByName(byDefault: boolean): BooleanSpec {
  return normalize(
    byDefault,
    'Divide by the sum of the weights that took part. paper and peft always divide by the number of models that did.',
  );
}

const RESCALES = {
  none: 'none',
  on: 'implementation default',
  '1/density': '1 / density',
  '1/probability': '1 / own probability (paper)',
  l1: 'match ‖τ‖₁ (mergekit)',
};

type Rescale = keyof typeof RESCALES;

/**
 * Factor of the kept changes. mergekit knows true and false only.
 * @param yes meaning of true
 */
export function rescale<R extends Rescale>(byDefault: R, yes: R, choices: readonly R[]): ChoiceSpec<R> {
  return {
    kind: 'choice',
    label: 'rescale',
    help: 'What the kept changes are multiplied by, to make up for those dropped.',
    default: byDefault,
    choices: choices.map((value) => ({ value, label: RESCALES[value] })),
    booleans: { true: yes, false: 'none' },
  };
}

/** The rescale of a method with named semantics: `on` is ‖τ‖₁ matching in mergekit, 1/ρ in the paper and in PEFT. */
export function rescaleByName(byDefault: 'none' | 'on'): ChoiceSpec {
  return rescale(byDefault, 'on', ['none', 'on', '1/density', 'l1']);
}

export function rescaleOf(p: ResolvedParameters): DeltaPreset['rescale'] {
  if (p.rescale !== 'on') return p.rescale as DeltaPreset['rescale'];
  return p.semantics === 'mergekit' ? 'l1' : '1/density';
}

/** Tool whose reading of a name is meant; they differ (docs/methods.md). */
export const semantics: ChoiceSpec = {
  kind: 'choice',
  label: 'implementation',
  help: 'Tools mean different things by this name: mergekit, the authors’ paper and code, or PEFT.',
  default: 'mergekit',
  extension: true,
  choices: [
    { value: 'mergekit', label: 'mergekit' },
    { value: 'paper', label: 'paper' },
    { value: 'peft', label: 'PEFT' },
  ],
};

export const majoritySign: ChoiceSpec = {
  kind: 'choice',
  label: 'majority_sign_method',
  help: 'PEFT only. How the sign is elected: by the sum of the changes, or by counting their signs.',
  default: 'total',
  extension: true,
  choices: [
    { value: 'total', label: 'total: sum of changes' },
    { value: 'frequency', label: 'frequency: count of signs' },
  ],
};

/** The sign election and the division of TIES, by the name of the semantics. */
export function consensusOf(
  p: ResolvedParameters,
): Pick<DeltaPreset, 'consensus' | 'ballots' | 'zeroVote' | 'normalize' | 'divisor'> {
  if (p.semantics === 'mergekit') return { consensus: 'sum', normalize: p.normalize === true };
  return {
    consensus: p.majority_sign_method === 'frequency' ? 'count' : 'sum',
    ballots: 'unweighted',
    zeroVote: p.semantics === 'paper' ? 'majority' : 'positive',
    normalize: true,
    divisor: 'count',
  };
}

/** What a method on differences computes, with the sign election of TIES on weighted changes. */
export function withSignElection({ compute }: MergeMethod): MergeMethod['compute'] {
  if (compute.kind !== 'delta') return compute;
  return { kind: 'delta', preset: (p) => ({ ...compute.preset(p), consensus: 'sum' }) };
}

/** `majority_sign_method` is PEFT's alone. */
export function checkMajoritySign(p: ResolvedParameters) {
  if (p.majority_sign_method !== 'frequency' || p.semantics === 'peft') return undefined;
  return {
    reason: `majority_sign_method: frequency has no meaning in the semantics ${p.semantics}`,
    remedy: 'Set semantics: peft, or leave majority_sign_method out.',
  };
}

/** ρ ± ε must be probabilities strictly between 0 and 1, unless everything or nothing is kept. */
export function checkEpsilon(_: ResolvedParameters, models: readonly ResolvedParameters[]) {
  for (const { density: d, epsilon: e } of models) {
    const rho = Number(d);
    const most = Math.min(rho, 1 - rho);
    if (rho <= 0 || rho >= 1 || Number(e) < most) continue;
    return {
      reason: `epsilon ${e} must be below min(density, 1 − density) = ${Number(most.toPrecision(6))}`,
      remedy: 'Choose a smaller epsilon, or a density nearer to 0.5.',
    };
  }
  return undefined;
}

export const int8Mask: BooleanSpec = {
  kind: 'boolean',
  label: 'int8_mask',
  help: 'A memory setting of mergekit without effect on the result.',
  default: false,
  inert: true,
};
