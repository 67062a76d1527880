/** An adapter in memory written to its destination. */
import { LORA_NAMINGS, type LoraNaming } from '../../formats/lora-naming';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { Destination, WrittenShard } from '../../write/destination';
import { writeWhole } from '../../write/output-commit';
import { partWriter, ShardWriter } from '../../write/shard-writer';
import { type AdapterEntry, type AdapterFile, inMemory, readEntry } from './adapter-file';
import { transposed } from './factors';
import { type ExtractOptions, encoded, type FactorModule, firstRanks } from './lora-modules';
import type { ExtractLoraReport } from './report';

/** Both factors of every module with a rank above 0, in the order of a convention. */
export function factorEntries(
  modules: readonly (Pick<FactorModule, 'module' | 'kind' | 'factors'> & { kernel?: readonly number[] })[],
  ranks: readonly number[],
  { dtype, naming = LORA_NAMINGS.peft }: Pick<ExtractOptions, 'dtype'> & { naming?: LoraNaming },
): AdapterEntry[] {
  const most = Math.max(...ranks);
  return modules.flatMap(({ module, kind, factors, kernel = [] }, i) => {
    const own = ranks[i]!;
    if (own === 0) return [];
    const rank = naming.oneRank ? most : own;
    const { a, b } = naming.factors(module, kind);
    const { inputs, outputs } = factors;
    const channels = kernel.reduce((rest, extent) => rest / extent, inputs);
    const ones = kernel.map(() => 1);
    return [
      inMemory(a.name, dtype, a.transposed ? [inputs, rank] : [rank, channels, ...kernel], () => {
        const rows = filledUp(firstRanks(factors, own), rank * inputs);
        return encoded(a.transposed ? transposed(rows, inputs) : rows, dtype);
      }),
      inMemory(b.name, dtype, b.transposed ? [rank, outputs] : [outputs, rank, ...ones], () => {
        const rows = filledUp(factors.b.subarray(0, own * outputs), rank * outputs);
        return encoded(b.transposed ? rows : transposed(rows, outputs), dtype);
      }),
    ];
  });
}

function filledUp(values: Float32Array, length: number): Float32Array {
  if (values.length === length) return values;
  const out = new Float32Array(length);
  out.set(values);
  return out;
}

/** Whole tensors are copied in pieces of this size. */
const COPY_BYTES = 8 * 2 ** 20;

/** Writes small files by their names, and the weights last. */
export async function writeAdapter(
  destination: Destination,
  file: AdapterFile,
  texts: Readonly<Record<string, string>>,
  read: ReadTensor,
): Promise<ExtractLoraReport['files'] & [WrittenShard, ...unknown[]]> {
  const small = Object.entries(texts);
  for (const [path, text] of small) await writeWhole(destination, path, text);
  const weights = await writeWeights(file, destination, read);
  return [
    weights,
    ...small.map(([path, text]) => ({ file: path, bytes: new TextEncoder().encode(text).length })),
  ];
}

async function writeWeights(
  file: AdapterFile,
  destination: Destination,
  read: ReadTensor,
): Promise<WrittenShard> {
  const writer = await ShardWriter.open(destination, file.plan);
  const part = partWriter(writer.written, (bytes, at) => writer.write(bytes, at));
  try {
    for (const entry of file.entries) {
      // factors are made anew at each read, so they go out whole; copies may be large
      const piece = typeof entry.content === 'function' ? entry.byteLength : COPY_BYTES;
      for (let begin = 0; begin < entry.byteLength; begin += piece) {
        await part.append(await readEntry(entry, begin, Math.min(begin + piece, entry.byteLength), read));
      }
    }
    await writer.take(await part.finish(), file.entries.length);
    return await writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}
