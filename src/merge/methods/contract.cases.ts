/**
 * The cases of the contract tests, derived from a method's own file and its oracle's: settings, models, tensors, and one function that
 * merges them on an engine through the same run as the studio's. Shared by contract.test.ts (the processor against the
 * oracles) and contract.gpu.test.ts (WebGPU against the processor).
 */
import type { Backend } from '../../backend/backend';
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import type { TensorRef } from '../../inputs/tensor-view';
import type { TensorReport } from '../../reports/job';
import type { MergeMethod, ParameterSpec } from '../method';
import type { Plan, ResolvedParameters, TensorPlan } from '../plan/plan';
import { runPlan } from '../run/run';
import { noise } from '../tensor/delta-pipeline.cases';
import type { Prepared } from '../tensor/prepared';
import type { MethodContract, MethodSettings, Oracle, OracleTensor } from './oracle';

export const DTYPES: readonly WeightDtype[] = ['F32', 'F16', 'BF16'];

/** A way to set a method's parameters, with or without a base where the method leaves that open. */
export interface Variant {
  name: string;
  base: boolean;
  parameters: ResolvedParameters;
  models: ResolvedParameters[];
}

/** Values for parameters that have no default. The first weight is more than the others together, which a vote shows. */
const GIVEN: Record<string, readonly number[]> = { weight: [0.9, 0.2, 0.3], t: [0.3] };

function defaults(specs: Readonly<Record<string, ParameterSpec>>, model: number): ResolvedParameters {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => {
      const value = spec.default ?? GIVEN[name]?.[model % GIVEN[name].length];
      if (value === undefined) throw new Error(`the contract tests have no value for ${name}`);
      return [name, value];
    }),
  );
}

/** What a method is held against: the exports of its oracle's file. */
export interface Judge {
  oracle: Oracle;
  contract: MethodContract;
}

const judges = import.meta.glob<Judge>('./*.oracle.ts', { eager: true });

/** Ids of the methods that bring an oracle. */
export const judged = Object.keys(judges).map((path) => path.slice(2, -10));

export function judgeOf({ id }: MergeMethod): Judge {
  const found = judges[`./${id}.oracle.ts`];
  if (!found) throw new Error(`${id} brings no oracle: add src/merge/methods/${id}.oracle.ts`);
  return found;
}

/** Defaults; every other choice of every boolean and choice; and the settings that the method's contract names. */
export function variantsOf(method: MergeMethod, { contract }: Judge = judgeOf(method)): Variant[] {
  const count = Math.min(3, method.models.max);
  const variant = (name: string, base: boolean, settings: MethodSettings): Variant => ({
    name,
    base,
    parameters: { ...defaults(method.parameters, 0), ...settings.parameters },
    models: Array.from({ length: count }, (_, i) => ({
      ...defaults(method.modelParameters, i),
      ...settings.models?.[i],
    })),
  });
  const others = Object.entries(method.parameters).flatMap(([name, spec]): MethodSettings[] => {
    // methods that need calibration are tested with it (src/calibration)
    if (spec.inert || spec.kind === 'text' || spec.calibrates) return [];
    if (spec.kind === 'boolean') return [{ parameters: { [name]: !spec.default } }];
    if (spec.kind === 'number') return [];
    return spec.choices
      .filter(({ value }) => value !== spec.default)
      .map(({ value }) => ({ parameters: { [name]: value } }));
  });
  const settings = [{}, ...others, ...contract.settings];
  const bases = method.base === 'optional' ? [true, false] : [method.base === 'required'];
  return bases
    .flatMap((base) => settings.map((s) => variant(nameOf(s, method.base === 'optional' && base), base, s)))
    .filter((v) => method.validate?.(v.parameters, v.models) === undefined);
}

function nameOf(settings: MethodSettings, withBase: boolean): string {
  const text = JSON.stringify(settings) === '{}' ? 'defaults' : JSON.stringify(settings);
  return withBase ? `base, ${text}` : text;
}

/** `tuned`: fine-tunes of a common base; `equal`: all inputs the same; `extreme`: what numbers can be at worst. */
export type Kind = 'tuned' | 'equal' | 'extreme';

const EXTREMES: Record<WeightDtype, number[]> = {
  F32: [0, -0, 1e-45, -3e-39, 2 ** -126, -(2 ** -125), 1e-37, -1e-30, 1e-19, 1, -1, 3.4e38, -3.4e38],
  BF16: [0, -0, 1e-40, -3e-39, 2 ** -126, -(2 ** -125), 1e-37, 1e-19, 1, -1, 3.3e38, -3.3e38],
  F16: [0, -0, 6e-8, -6e-8, 3e-5, -6.1e-5, 1, -1, 65504, -65504],
};

function valuesOf(
  kind: Kind,
  dtype: WeightDtype,
  n: number,
  model: number,
  seed: number,
): Float32Array<ArrayBuffer> {
  const base = noise(n, seed, 0.05);
  if (kind === 'equal') return base.map((x, e) => (e % 7 === 0 ? -0 : x));
  if (kind === 'extreme') {
    const list = EXTREMES[dtype];
    const picks = noise(n, seed + 31 * (model + 1), 1e6);
    return base.map((x, e) => (e % 3 === 0 ? x : list[Math.abs(Math.trunc(picks[e]!)) % list.length]!));
  }
  if (model === 0) return base;
  const change = noise(n, seed + 31 * model, 0.01);
  // every third value of the second model is the base's, so that its task vector has exact zeros
  return base.map((x, e) => (model === 2 && e % 3 === 0 ? x : x + change[e]!));
}

export interface ContractModel {
  tensors: TensorPlan[];
  oracle: OracleTensor[];
  read: (ref: TensorRef, begin: number, end: number) => Promise<Uint8Array<ArrayBuffer>>;
  bytes: Map<TensorRef, Uint8Array<ArrayBuffer>>;
}

export const SEED = 42;

/** The tensors of a small model, one per shape, with their contributors. */
export function contractModel(
  method: MergeMethod,
  variant: Variant,
  dtype: WeightDtype,
  shapes: readonly (readonly number[])[],
  kind: Kind = 'tuned',
): ContractModel {
  const bytes = new Map<TensorRef, Uint8Array<ArrayBuffer>>();
  const put = (folder: string, key: string, shape: readonly number[], values: Float32Array): TensorRef => {
    const data = new Uint8Array(values.length * (dtype === 'F32' ? 4 : 2));
    encodeFromF32(values, dtype, data);
    const ref = { folder, file: 'model.safetensors', key, dtype, shape, begin: 0, end: data.length };
    bytes.set(ref, data);
    return ref;
  };
  const decoded = (ref: TensorRef): Float64Array => {
    const values = new Float32Array(ref.shape.reduce((a, b) => a * b, 1));
    decodeToF32(bytes.get(ref)!, dtype, values);
    return Float64Array.from(values);
  };
  const tensors = shapes.map((shape, index): TensorPlan => {
    const name = `model.layers.${index}.weight`;
    const elements = shape.reduce((a, b) => a * b, 1);
    const origin = (model: number) =>
      put(`m${model}`, name, shape, valuesOf(kind, dtype, elements, model, 100 * index + 1));
    return {
      name,
      shape,
      elements,
      dtype,
      role: { layer: index, module: 'weight', kind: 'linear' },
      ...(variant.base ? { base: { origin: origin(0), onBase: true } } : {}),
      models: variant.models.map((parameters, i) => ({
        id: `m${i + 1}`,
        view: { origin: origin(i + 1), onBase: false },
        parameters,
      })),
      parameters: variant.parameters,
      method: method.id,
    };
  });
  return {
    tensors,
    bytes,
    read: async (ref, begin, end) => bytes.get(ref)!.slice(begin, end),
    oracle: tensors.map(({ name, shape, base, models, parameters }) => ({
      name,
      shape,
      ...(base ? { base: decoded(base.origin) } : {}),
      models: models.map((m) => ({ id: m.id, weights: decoded(m.view.origin), parameters: m.parameters })),
      parameters,
      seed: SEED,
    })),
  };
}

/** No calibration: every tensor is merged as those that no model runs through. */
const NOTHING: Prepared = {
  selection: () => undefined,
  solution: () => undefined,
  rowWeights: () => undefined,
};

export interface Merged {
  bytes: Map<string, Uint8Array>;
  reports: TensorReport[];
}

/** Merges the tensors through the run, in tiles of `tileElements`. */
export async function mergeModel(
  engine: Backend,
  method: MergeMethod,
  { tensors, read }: ContractModel,
  tileElements = 65_536,
  nonFinite: 'stop' | 'carry' = 'stop',
): Promise<Merged> {
  const header = new Uint8Array(0);
  const shards = tensors.map(({ name, dtype, shape, elements }) => {
    const byteLength = elements * (dtype === 'F32' ? 4 : 2);
    return { file: name, tensors: [{ name, dtype, shape, byteLength }], header, byteLength };
  });
  const plan: Plan = {
    recipe: { mergeMethod: method.id, parameters: {}, amalgam: { seed: SEED, nonFinite } },
    problems: [],
    contributors: tensors[0]!.models.map((m) => m.id),
    tensors,
    shards,
    extras: [],
    inputs: [],
    layers: tensors.length,
    peakBytes: 0,
    bytesToDownload: 0,
    bytesToRead: 0,
    bytesToWrite: 0,
  };
  const { tensors: reports, shards: written } = await runPlan<[string, Uint8Array]>({
    plan,
    shards,
    engine,
    methods: new Map([[method.id, method]]),
    read,
    tileElements,
    prepared: NOTHING,
    async openShard(shard) {
      const out = new Uint8Array(shard.byteLength);
      let came = 0;
      return {
        async write(piece, at) {
          out.set(piece, at - shard.header.length);
          came += piece.length;
        },
        async finish() {
          if (came !== out.length) throw new Error(`${shard.file}: ${came} of ${out.length} bytes`);
          return [shard.file, out];
        },
        abort() {},
      };
    },
  });
  return { bytes: new Map(written), reports };
}

/** The f32 values of a merged tensor. */
export function mergedValues(merged: Merged, { name, dtype, elements }: TensorPlan): Float32Array {
  const values = new Float32Array(elements);
  decodeToF32(merged.bytes.get(name)!, dtype as WeightDtype, values);
  return values;
}
