/** Parameters of calibration (src/calibration): importance, calibration text. */
import type {
  ChoiceSpec,
  DeltaPreset,
  MergeMethod,
  NumberSpec,
  ParameterConflict,
  TextSpec,
} from '../method';
import type { ResolvedParameters } from '../plan/plan';

export const WITH_IMPORTANCE = [{ parameter: 'selector', is: 'importance' }];
const WITH_TEXT = [...WITH_IMPORTANCE, { parameter: 'lambda', is: 'auto' }];

/** How the kept changes are chosen: method default, or by importance. */
const selector: ChoiceSpec = {
  kind: 'choice',
  label: 'selector',
  help: 'importance keeps the changes that matter for the model’s own text. Compared with magnitude: clearly better below 10 % density, 1–4 % at 20–50 %; with compensation about 10 % at 20 %.',
  default: 'method',
  extension: true,
  calibrates: true,
  choices: [
    { value: 'method', label: 'method default' },
    { value: 'importance', label: 'importance' },
  ],
};

const score: ChoiceSpec = {
  kind: 'choice',
  label: 'score',
  help: 'wanda: τ²·H, the best as a mask. obs: what is lost when the others make up for it. sparsegpt: the same from left to right.',
  default: 'wanda',
  extension: true,
  calibrates: true,
  choices: ['wanda', 'obs', 'sparsegpt'].map((value) => ({ value, label: value })),
};

const scope: ChoiceSpec = {
  kind: 'choice',
  label: 'scope',
  help: 'Where changes compete: in the whole tensor, in a row, or in a block of 128 columns.',
  default: 'tensor',
  extension: true,
  calibrates: true,
  refused: {
    global:
      'cannot be global with importance: the error of one layer says nothing of the others, and merges get worse by 4–14 %',
  },
  choices: [
    { value: 'tensor', label: 'tensor' },
    { value: 'row', label: 'row' },
    { value: 'block', label: '128-column block' },
  ],
};

const compensation: ChoiceSpec = {
  kind: 'choice',
  label: 'compensation',
  help: 'Kept changes make up for those dropped, by four or more steps of conjugate gradients.',
  default: 'cg',
  extension: true,
  calibrates: true,
  booleans: { true: 'cg', false: 'off' },
  choices: [
    { value: 'cg', label: 'least squares (cg)' },
    { value: 'off', label: 'off' },
  ],
};

const windows: NumberSpec = {
  kind: 'number',
  label: 'calibration windows',
  help: 'How many windows of text every model reads. 8, 32 or 128; at least 12 tokens per input of the widest layer are advised.',
  default: 128,
  extension: true,
  min: 1,
  max: 4096,
  integer: true,
};

const windowLength: NumberSpec = {
  kind: 'number',
  label: 'tokens of a window',
  help: 'Length of a stretch of calibration text.',
  default: 256,
  extension: true,
  min: 8,
  max: 8192,
  integer: true,
};

/** Calibration text of a model; given for each model, or once for all. */
export const calibrationAlways: TextSpec = {
  kind: 'text',
  label: 'calibration',
  help: 'What the model reads: self, which it generates from the seed, or a text of yours. Use a different text per model.',
  default: 'self',
  extension: true,
  values: 'self, or the name of a text file',
};

/** The same for methods that need it for importance or `lambda: auto` alone. */
export const calibration: TextSpec = { ...calibrationAlways, when: WITH_TEXT };

/** Parameters of the text that models read, for methods with `lambda: auto`. */
export const calibrationSize = {
  calibration_windows: { ...windows, when: WITH_TEXT },
  calibration_window: { ...windowLength, when: WITH_TEXT },
};

/** How much text a model reads, with the defaults for what is not set. */
export function textSize(parameters: Readonly<Record<string, unknown>>): { windows: number; length: number } {
  return {
    windows: Number(parameters.calibration_windows ?? windows.default),
    length: Number(parameters.calibration_window ?? windowLength.default),
  };
}

/** Parameters of methods that trim by importance always. */
export const importanceAlways = {
  score,
  scope,
  compensation,
  calibration_windows: windows,
  calibration_window: windowLength,
};

/** Parameters of delta methods that can trim by importance. */
export const importance = {
  selector,
  score: { ...score, when: WITH_IMPORTANCE },
  scope: { ...scope, when: WITH_IMPORTANCE },
  compensation: { ...compensation, when: WITH_IMPORTANCE },
  ...calibrationSize,
};

/** The selection and the rescaling of a preset, where the recipe may ask for importance: never rescaled by 1/ρ. */
export function byImportance(
  p: ResolvedParameters,
  own: Pick<DeltaPreset, 'select' | 'rescale'>,
): Pick<DeltaPreset, 'select' | 'rescale'> {
  return p.selector === 'importance' ? { select: 'prepared', rescale: 'none' } : own;
}

/** Conflict of semantics: paper, which measures whole models, with importance. */
export function checkPaper(p: ResolvedParameters): ParameterConflict | undefined {
  if (p.selector !== 'importance' || p.semantics !== 'paper') return undefined;
  return {
    reason:
      'semantics: paper measures whole models (its scope is global), and importance of different layers cannot be compared',
    remedy: 'Set semantics: mergekit or peft, or selector: method.',
  };
}

/**
 * Rescaling does not go with importance.
 * @param rescale the method's own default, which importance switches off by itself
 */
export function checkImportance(p: ResolvedParameters, rescale: string): ParameterConflict | undefined {
  if (p.selector !== 'importance') return undefined;
  if (p.rescale !== undefined && p.rescale !== 'none' && p.rescale !== rescale) {
    return {
      reason: `rescale: ${p.rescale} has no place with selector: importance: what it keeps is no random part of the change`,
      remedy: 'Leave rescale out.',
    };
  }
  return undefined;
}

/** The calibration text is one for the whole model. */
export const wholeCalibration: NonNullable<MergeMethod['wholeModel']> = (p) =>
  p.selector === 'importance' ? ['calibration'] : [];
