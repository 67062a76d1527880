/** The output of a merge of image models: its files are those of the base, by their names and with the names of the tensors in them. */
import { tensorBytes } from '../../formats/safetensors-header';
import { buildShardIndex } from '../../formats/shard-index';
import type { Checkpoint } from '../../inputs/checkpoint';
import type { Plan, TensorPlan } from './plan';

/** Where the tensors of a checkpoint lie, by their names in the plan. */
export function placesOf({ tensors }: Checkpoint): NonNullable<Plan['places']> {
  return new Map([...tensors].map(([name, { file, key }]) => [name, { file, key }]));
}

/** The indices of those of its folders that have several files of weights. */
export function imageIndices(checkpoint: Checkpoint, tensors: readonly TensorPlan[]): Plan['extras'] {
  const places = placesOf(checkpoint);
  return checkpoint.folder.files.flatMap(({ path }) => {
    const [, folder] = /^(.*\/)?[^/]+\.safetensors\.index\.json$/.exec(path) ?? [];
    if (!path.endsWith('.safetensors.index.json')) return [];
    const own = tensors.flatMap(({ name, dtype, shape }) => {
      const { file, key } = places.get(name)!;
      const inside = file.slice((folder ?? '').length);
      const isHere = file.startsWith(folder ?? '') && !inside.includes('/');
      return isHere ? [{ entry: [key, inside] as const, bytes: tensorBytes(dtype, shape)! }] : [];
    });
    if (own.length === 0) return [];
    const text = buildShardIndex(
      own.map(({ entry }) => entry),
      own.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    return [{ path, content: { text } }];
  });
}
