/** Of every combination of LoRAs: what it reads changes the output, what it does not read is named in the plan. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMBINATIONS_OF, parametersOf } from '../src/formats/adapter-combination';
import type { ParameterSpec } from '../src/merge/method';
import { methodById } from '../src/merge/methods';
import { goldenFolder } from './goldens';
import { mergeInNode, planInNode } from './merge-in-node';

const root = join(goldenFolder('adapters'), 'add_weighted_adapter/inputs');
// of one rank, which every combination takes
const models = ['a', 'b'];

/** A value that is not the default, and has an effect where anything has. */
function otherValue(name: string, spec: ParameterSpec): string | number | boolean {
  if (spec.kind === 'boolean') return !spec.default;
  if (spec.kind === 'choice') return spec.choices.find(({ value }) => value !== spec.default)!.value;
  return name === 'density' ? 0.4 : 0.7;
}

const cases = Object.entries(COMBINATIONS_OF).flatMap(([id, combinations]) =>
  id === 'passthrough' ? [] : combinations.map((combination) => [combination, id] as const),
);

describe.each(cases)('%s of %s', (combination, id) => {
  const method = methodById.get(id)!;
  const yaml = (of: 'method' | 'model', name: string, value: string | number | boolean) => {
    // a weight of its own, so that a draw and a vote have something to decide
    const own = (i: number) => ({
      ...('weight' in method.modelParameters ? { weight: 1 - i / 4 } : {}),
      ...('density' in method.modelParameters && id !== 'gram' ? { density: 0.6 } : {}),
      ...(of === 'model' ? { [name]: value } : {}),
    });
    const settings = {
      ...(id === 'gram' ? { match: 'changes' } : {}),
      ...(of === 'method' ? { [name]: value } : {}),
    };
    const listed = models.map((model, i) => ({ model: `base+${model}`, parameters: own(i) }));
    return JSON.stringify({
      merge_method: id,
      base_model: 'base',
      models: listed,
      parameters: settings,
      amalgam: { output: 'adapter', combination, rank: 4 },
    });
  };
  const bytesOf = async (text: string) =>
    [...(await mergeInNode(text, root, {})).tensors].map(([tensor, { bytes }]) => [tensor, bytes]);
  let plainBytes: ReturnType<typeof bytesOf> | undefined;

  const specs = [
    ...Object.entries(method.parameters).map(([name, spec]) => ['method', name, spec] as const),
    ...Object.entries(method.modelParameters).map(([name, spec]) => ['model', name, spec] as const),
  ].filter(([, name, spec]) => spec.kind !== 'text' && name !== 'match');

  it.each(specs)('of the %s: %s', async (of, name, spec) => {
    const other = yaml(of, name, otherValue(name, spec));
    const { plan } = await planInNode(other, root, {}).catch((refused: Error) => {
      // what no LoRA can be made of is refused before anything is read
      expect(refused.message).toMatch(/needs whole Gram/);
      return { plan: undefined };
    });
    if (!plan) return;
    const isNamed = plan.problems.some(
      ({ code, message }) => code === 'ParameterIgnored' && message.split(/[ ,]+/).includes(name),
    );
    expect(isNamed).toBe(!parametersOf(combination, 'changes').includes(name));
    plainBytes ??= bytesOf(yaml('method', 'lambda', 1));
    if (isNamed) expect(await bytesOf(other)).toEqual(await plainBytes);
    else expect(await bytesOf(other)).not.toEqual(await plainBytes);
  });
});
