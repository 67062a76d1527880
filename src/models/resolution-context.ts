/** Context of every part of a resolution: the config, the wiring, and the sizes; and makers of its leaves. */
import { AmalgamError } from '../errors';
import { displayName } from '../formats/names';
import type { Activation, Linear, Norm, Vector } from './architecture';
import { type ConfigFile, needNumber, readFlag, readText, unsupported } from './config-reader';
import type { ActivationField, BlockContext, Context, FlagField } from './wiring';

export type { BlockContext, Context };

/** Names of transformers' activations (activations.py) that are the same function. */
const ACTIVATIONS: ReadonlyMap<string, Activation> = new Map([
  ['silu', 'silu'],
  ['swish', 'silu'],
  ['gelu', 'gelu_erf'],
  ['gelu_python', 'gelu_erf'],
  ['gelu_new', 'gelu_tanh'],
  ['gelu_fast', 'gelu_tanh'],
  ['gelu_pytorch_tanh', 'gelu_tanh'],
  ['relu', 'relu'],
  ['relu2', 'relu2'],
  ['xielu', 'xielu'],
  // no name of transformers: modeling_bloom.py has it written out
  ['gelu_bloom', 'gelu_bloom'],
]);

export function resolveActivation(config: ConfigFile, field: ActivationField): Activation {
  const name =
    field.fields.map((path) => readText(config, path)).find((text) => text !== undefined) ?? field.orElse;
  const activation = ACTIVATIONS.get(name);
  if (activation) return activation;
  throw unsupported(`${displayName(config.fileName)}: the activation “${displayName(name)}” is not known.`);
}

export function linear(
  context: Context,
  module: string,
  inputs: number,
  outputs: number,
  bias: FlagField,
  scale = 1,
): Linear {
  return {
    weight: `${module}.weight`,
    ...(readFlag(context.config, bias) && { bias: `${module}.bias` }),
    inputs,
    outputs,
    storage: context.family.linearStorage,
    ...(scale !== 1 && { scale }),
  };
}

/**
 * A factor of what enters a linear map counts as one of what leaves it, which is the same where there is no bias.
 * @throws AmalgamError `ArchitectureUnsupported` where there is one
 */
export function refuseScaledBias({ config }: Context, bias: FlagField, factor: number): void {
  if (factor === 1 || !readFlag(config, bias)) return;
  const what = typeof bias === 'object' ? `${bias.field} = true` : 'biases';
  throw unsupported(
    `${displayName(config.fileName)}: ${what} cannot be run beside a factor of ${factor} for what enters.`,
  );
}

export function makeNorm({ config, wiring }: Context, module: string, width: number): Norm {
  const { kind, bias, epsilon, weightless } = wiring.norm;
  const value = needNumber(config, epsilon);
  if (value < 0)
    throw new AmalgamError('ConfigInvalid', `${config.fileName}: a negative epsilon.`, 'Correct it.');
  return {
    kind,
    weight: weightless ? 1 : `${module}.weight`,
    ...(readFlag(config, bias) && { bias: `${module}.bias` }),
    epsilon: value,
    width,
  };
}

/** `{ [key]: value }`, or nothing for undefined. */
export function pick<K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
}

/** One tensor as a vector. */
export function vector(name: string, ...shape: number[]): Vector {
  return { tensors: [{ name, shape }] };
}
