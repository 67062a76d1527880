import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import type { RecipeParameters } from '../formats/recipe';
import type { Plan, ResolvedParameters, TensorPlan } from '../merge/plan/plan';
import type { Architecture } from '../models/architecture';
import { calibrationBytes, calibrationChoice, calibrationProblems, type Match } from './plan-problems';

const SIZE = { calibration_windows: 32, calibration_window: 256 };

function plan(
  models: Record<string, ResolvedParameters>,
  recipe: { parameters?: RecipeParameters; slices?: true } = {},
): Plan {
  const origin = {
    folder: 'm',
    file: 'f',
    key: 'w',
    dtype: 'F32',
    shape: [4, 4],
    begin: 0,
    end: 64,
  } as const;
  const tensor: TensorPlan = {
    name: 'w',
    shape: [4, 4],
    elements: 16,
    dtype: 'F32',
    role: { layer: 0, module: 'w', kind: 'linear' },
    models: Object.entries(models).map(([id, parameters]) => ({
      id,
      view: { origin, onBase: false },
      parameters,
    })),
    parameters: SIZE,
    method: 'gram',
  };
  return {
    recipe: {
      mergeMethod: 'gram',
      models: [],
      parameters: recipe.parameters ?? {},
      amalgam: {},
      ...(recipe.slices ? { slices: [] } : {}),
    },
    problems: [],
    contributors: Object.keys(models),
    tensors: [tensor],
    shards: [],
    extras: [],
    inputs: [],
    layers: 1,
    bytesToDownload: 0,
    bytesToRead: 0,
    bytesToWrite: 0,
    peakBytes: 0,
  };
}

/** Of a model with this hidden size and inner width. */
function architecture(hidden: number, inner: number): Architecture {
  const linear = (inputs: number) => ({ weight: 'w', inputs, outputs: hidden, storage: 'out_in' });
  const part = (kind: string, inputs: number) => ({
    name: kind,
    part: { kind, projections: [linear(hidden)], output: linear(inputs) },
  });
  const block = { steps: [{ branches: [part('attention', hidden), part('mlp', inner)] }] };
  return { hidden, blocks: [block] } as unknown as Architecture;
}

const asked = (kind: 'selection' | 'solution' | undefined, inner = 352) => ({
  kind,
  imatrix: undefined,
  architecture: async () => architecture(128, inner),
  hasText: (name: string) => name.endsWith('.txt'),
});
const codes = async (...args: Parameters<typeof calibrationProblems>) =>
  (await calibrationProblems(...args)).map((p) => `${p.severity} ${p.code}`);

const SELF = { a: { calibration: 'self' }, b: { calibration: 'self' } };

describe('a plan that runs its models', () => {
  test('is fine with 12 tokens per input, and warns below', async () => {
    expect(await codes(plan(SELF), asked('solution'))).toEqual([]);
    const [problem] = await calibrationProblems(plan(SELF), asked('solution', 1024));
    expect(problem).toMatchObject({ severity: 'warning', code: 'CalibrationShort' });
    expect(problem!.message).toContain('8.0 per input of the widest layer (1024)');
    expect(problem!.remedy).toContain('calibration_windows: 48');
  });

  test('knows its texts, and warns of one for all in a Gram merge only', async () => {
    const shared = plan({ a: { calibration: 'all.txt' }, b: { calibration: 'all.txt' } });
    expect(await codes(shared, asked('solution'))).toEqual(['warning CalibrationShared']);
    expect(await codes(shared, asked('selection'))).toEqual([]);
    const missing = plan({ a: { calibration: 'gone.md' }, b: { calibration: 'self' } });
    expect(await codes(missing, asked('solution'))).toEqual(['error CalibrationUnknown']);
  });

  test('knows the text of an importance matrix, which needs no models to be run alone', async () => {
    const slices = plan(SELF, { slices: true });
    expect(await codes(slices, { ...asked(undefined), imatrix: { text: 'a.txt' } })).toEqual([]);
    expect(await codes(slices, { ...asked(undefined), imatrix: { text: 'gone.md' } })).toEqual([
      'error CalibrationUnknown',
    ]);
  });

  test('is refused where the models cannot be run', async () => {
    const refusing = {
      ...asked('solution'),
      architecture: async () => {
        throw new AmalgamError('ArchitectureUnsupported', 'A mamba is not known here.', 'Take another.');
      },
    };
    const [problem] = await calibrationProblems(plan(SELF), refusing);
    expect(problem).toMatchObject({ severity: 'error', code: 'CannotRun' });
    expect(problem!.message).toContain('A mamba is not known here.');
    expect(await codes(plan(SELF, { slices: true }), asked('solution'))).toEqual(['error CannotRun']);
    const broken = { ...plan(SELF), problems: [{ ...problem!, code: 'OutOfRange' }] };
    expect(await codes(broken, refusing)).toEqual([]);
  });
});

describe('lambda: auto', () => {
  test('may stand among the parameters of the recipe', async () => {
    expect(await codes(plan(SELF, { parameters: { lambda: 'auto' } }), asked(undefined))).toEqual([]);
  });

  test('is refused in a filter', async () => {
    const filtered = { lambda: [{ filter: 'mlp', value: 'auto' }, { value: 1 }] };
    expect(await codes(plan(SELF, { parameters: filtered }), asked(undefined))).toEqual([
      'error ParameterInvalid',
    ]);
  });
});

test('a plan that needs no calibration says nothing, whatever its texts', async () => {
  expect(await codes(plan({ a: { calibration: 'gone.md' } }), asked(undefined))).toEqual([]);
});

test('the choice of texts and sizes is read off the resolved parameters', () => {
  const { size, texts } = calibrationChoice(plan({ a: {}, b: { calibration: 'b.txt' } }));
  expect(size).toEqual({ windows: 32, length: 256 });
  expect([...texts]).toEqual([
    ['a', 'self'],
    ['b', 'b.txt'],
  ]);
});

test('memory grows with contributors and tokens', () => {
  const bytes = (windows: number, models: string[], match?: Match) =>
    calibrationBytes(
      architecture(128, 352),
      { size: { windows, length: 256 }, texts: new Map(models.map((m) => [m, 'self'])) },
      match,
    );
  expect(bytes(64, ['a']) - bytes(32, ['a'])).toBe(32 * 256 * 128 * 4);
  expect(bytes(32, ['a', 'b'])).toBe(2 * bytes(32, ['a']));
  expect(bytes(64, ['a'], 'outputs') - bytes(32, ['a'], 'outputs')).toBe(2 * 32 * 256 * 128 * 4);
  expect(bytes(32, ['a'], 'changes')).toBe(0);
});
