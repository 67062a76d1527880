import { ggufName } from '../../formats/gguf-type';
import { type GgufFile, ggufFile } from '../../gguf/gguf-file';
import type { GgufPlan } from '../../gguf/gguf-plan';
import type { ShardPlan } from '../../write/shard-plan';
import { AMALGAM_VERSION } from '../version';
import { originText, type Plan } from './plan';
import { knownHashes } from './shards';

/**
 * The GGUF file with everything known in its metadata; its parts are in the order of the shards, where there are any.
 * @param imatrix what weighed its columns, in words
 * @param stem its name without the type; `model` where nobody has a name for it
 */
export function finishGguf(
  plan: Pick<Plan, 'recipe' | 'madeBy' | 'inputs'> & { gguf: GgufPlan },
  shards: readonly ShardPlan[],
  stem: string | undefined,
  hashes: ReadonlyMap<string, string>,
  imatrix?: string,
): GgufFile {
  const { gguf } = plan;
  const { key, text } = originText(plan);
  const order = shards.flatMap((shard) => shard.tensors.map(({ name }) => name));
  const known = knownHashes(plan.inputs, hashes);
  const texts: [key: string, text: string][] = [
    [`amalgam.${key}`, text],
    ['amalgam.version', AMALGAM_VERSION],
    ...(known === undefined ? [] : [['amalgam.inputs', known] satisfies [string, string]]),
    ...(imatrix === undefined ? [] : [['quantize.imatrix.dataset', imatrix] satisfies [string, string]]),
  ];
  return ggufFile(
    ggufName(stem, gguf.type),
    gguf,
    order.length > 0 ? order : [...gguf.tensors.keys()],
    texts.map(([key, value]) => [key, { type: 'text', value }] as const),
  );
}
