/** The tensors of an adapter under PEFT's key names (its `save_and_load.py`), from what changed and the ranks chosen. */

import { isWeightDtype } from '../../formats/dtype';
import type { ModelTensor } from '../../inputs/model';
import { isPlain } from '../../merge/plan/untouched-tensors';
import { openPair, openPairWorkspace } from '../difference/pair-task';
import { pairElements, type TensorPair } from '../difference/tensor-pairs';
import { type AdapterEntry, copied, inMemory } from './adapter-file';
import { encoded, firstRanks, firstRanksByOutput } from './lora-factors';
import type { ChangedTensors, ExtractOptions, FactorModule } from './lora-modules';
import { hasBias, peftName } from './lora-targets';

const PREFIX = 'base_model.model.';

/** lora_A and lora_B of every module with a rank above 0. */
export function factorEntries(
  modules: readonly FactorModule[],
  ranks: readonly number[],
  { dtype }: ExtractOptions,
): AdapterEntry[] {
  return modules.flatMap(({ module, kind, factors }, i) => {
    const rank = ranks[i]!;
    if (rank === 0) return [];
    const [nameA, nameB] =
      kind === 'embedding' ? ['lora_embedding_A', 'lora_embedding_B'] : ['lora_A.weight', 'lora_B.weight'];
    return [
      inMemory(`${PREFIX}${module}.${nameA}`, dtype, [rank, factors.inputs], () =>
        encoded(firstRanks(factors, rank), dtype),
      ),
      inMemory(`${PREFIX}${module}.${nameB}`, dtype, [factors.outputs, rank], () =>
        encoded(firstRanksByOutput(factors, rank), dtype),
      ),
    ];
  });
}

/**
 * Whether the changes of biases can be carried as biases of lora_B: PEFT then wants one for every target, adds it to the
 * target's own bias, and knows none for embeddings.
 */
export function canCarryBiases({ modules, biases }: ChangedTensors, { base }: ExtractOptions): boolean {
  return (
    biases.size > 0 &&
    modules.length > 0 &&
    modules.every(({ module, kind }) => kind === 'linear' && hasBias(base, module))
  );
}

/** lora_B.bias of every module, zeros where its bias did not change. */
export function biasEntries(
  modules: readonly FactorModule[],
  { biases }: ChangedTensors,
  { dtype }: ExtractOptions,
): AdapterEntry[] {
  return modules.map(({ module, factors }) => {
    const delta = biases.get(module)?.delta ?? new Float32Array(factors.outputs);
    return inMemory(`${PREFIX}${module}.lora_B.bias`, dtype, [delta.length], () => encoded(delta, dtype));
  });
}

/**
 * Every tensor of the saved modules as the fine-tune has it: copied byte for byte, or computed in f32 where an adapter
 * makes it. A tied head goes with its embedding, since PEFT saves both apart.
 */
export async function savedEntries(
  saved: ReadonlySet<string>,
  options: ExtractOptions,
): Promise<{ entries: AdapterEntry[]; modules: string[]; left: ChangedTensors['left'] }> {
  const { base, tuned } = options;
  const wanted: { name: string; tensor: ModelTensor }[] = [];
  const modules = new Set(saved);
  for (const [key, tensor] of tuned.tensors) {
    const name = peftName(tensor.name, key, tuned);
    if (saved.has(moduleOf(name))) wanted.push({ name, tensor });
    if (key !== tuned.embedding || !base.tied || !tuned.tied || tuned.head === undefined) continue;
    if (!saved.has(moduleOf(name))) continue;
    wanted.push({ name: tuned.head, tensor });
    modules.add(moduleOf(tuned.head));
  }
  const entries: AdapterEntry[] = [];
  const left: ChangedTensors['left'] = [];
  for (const { name, tensor } of wanted) {
    const { view } = tensor;
    if (!isWeightDtype(view.origin.dtype)) {
      left.push({ name, normDelta: null, why: `it is stored as ${view.origin.dtype}` });
    } else if (isPlain(view)) entries.push(copied(PREFIX + name, view.origin));
    else {
      const bytes = await computed(tensor, options);
      entries.push(inMemory(PREFIX + name, 'F32', tensor.shape, () => bytes));
    }
  }
  return { entries, modules: [...modules], left };
}

function moduleOf(name: string): string {
  return name.replace(/\.(?:weight|bias)$/, '');
}

/** The f32 values of a version that an adapter makes. */
async function computed(
  tensor: ModelTensor,
  { engine, read, tileElements }: ExtractOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const pair: TensorPair = { name: tensor.name, key: tensor.name, base: tensor, tuned: tensor };
  const bytes = new Uint8Array(pairElements(pair) * 4);
  const work = openPairWorkspace(engine, [pair], tileElements);
  const open = openPair(pair, work, read);
  try {
    await open.task.pass(async ({ begin, end }) => {
      const [tile] = await engine.read([
        { buffer: work.values, byteOffset: 2 * work.stride * 4, byteLength: (end - begin) * 4 },
      ]);
      bytes.set(tile!, begin * 4);
    });
  } finally {
    open.close();
    work.close();
  }
  return bytes;
}
