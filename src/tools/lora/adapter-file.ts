/** `adapter_model.safetensors`: factors in memory, whole tensors where they are stored; its card, and how it is written. */
import { type Dtype, type WeightDtype, weightBytes } from '../../formats/dtype';
import { LORA_NAMINGS, type LoraNaming } from '../../formats/lora-naming';
import { markdownText, nameCode } from '../../formats/model-card';
import { ADAPTER_WEIGHTS } from '../../formats/peft-config';
import { buildSafetensorsHeader, sortForFile } from '../../formats/safetensors-write';
import { yamlText } from '../../formats/yaml-text';
import { type ReadTensor, transpose } from '../../inputs/stored-tensor';
import type { TensorRef } from '../../inputs/tensor-view';
import type { ByteSource } from '../../sources/byte-source';
import type { Destination, WrittenShard } from '../../write/destination';
import { writeWhole } from '../../write/output-commit';
import type { ShardPlan } from '../../write/shard-plan';
import { partWriter, ShardWriter } from '../../write/shard-writer';
import { count, real } from '../difference/findings';
import { type ExtractOptions, encoded, type FactorModule, firstRanks } from './lora-modules';
import type { ExtractLoraReport } from './report';

export interface AdapterEntry {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
  byteLength: number;
  /** Maker of its bytes, or the stored tensor to copy. */
  content: (() => Uint8Array<ArrayBuffer>) | TensorRef;
}

export interface AdapterFile {
  /** Plan for the shard writer. */
  plan: ShardPlan;
  /** In file order. */
  entries: readonly AdapterEntry[];
  /** The whole file, header included. */
  source: ByteSource;
}

/** @param bytes makes the stored bytes, each time they are read: a second copy of all factors would be large */
export function inMemory(
  name: string,
  dtype: WeightDtype,
  shape: readonly number[],
  bytes: () => Uint8Array<ArrayBuffer>,
): AdapterEntry {
  const byteLength = shape.reduce((product, extent) => product * extent, weightBytes(dtype));
  return { name, dtype, shape, byteLength, content: bytes };
}

export function copied(name: string, origin: TensorRef): AdapterEntry {
  const { dtype, shape } = origin;
  return { name, dtype, shape, byteLength: origin.end - origin.begin, content: origin };
}

/** Lays the tensors out in the order of the Rust writer. @throws AmalgamError from the header */
export function adapterFile(
  unordered: readonly AdapterEntry[],
  metadata: Readonly<Record<string, string>>,
  read: ReadTensor,
  weights: string = ADAPTER_WEIGHTS,
): AdapterFile {
  const entries = sortForFile(unordered);
  const header = buildSafetensorsHeader(entries, metadata);
  const byteLength = entries.reduce((sum, entry) => sum + entry.byteLength, header.byteLength);
  const tensors = entries.map(({ name, dtype, shape, byteLength: bytes }) => ({
    name,
    dtype,
    shape,
    byteLength: bytes,
  }));
  return {
    plan: { file: weights, tensors, header, byteLength },
    entries,
    source: {
      byteLength,
      async read(begin, end) {
        const out = new Uint8Array(end - begin);
        let at = 0; // of the part in the file
        const put = async (length: number, part: (from: number, to: number) => Promise<Uint8Array>) => {
          const from = Math.max(begin, at);
          const to = Math.min(end, at + length);
          if (from < to) out.set(await part(from - at, to - at), from - begin);
          at += length;
        };
        await put(header.byteLength, async (from, to) => header.subarray(from, to));
        for (const entry of entries)
          await put(entry.byteLength, (from, to) => readEntry(entry, from, to, read));
        return out;
      },
    },
  };
}

/** Bytes [begin, end) of a tensor of the file. */
export async function readEntry(
  { content }: AdapterEntry,
  begin: number,
  end: number,
  read: ReadTensor,
): Promise<Uint8Array<ArrayBuffer>> {
  return typeof content === 'function' ? content().slice(begin, end) : read(content, begin, end);
}

// ---------------------------------------------------------------- its README.md

/**
 * The README.md of an extracted adapter: what it is, how near it comes, and what it does not carry.
 *
 * @param hubBase id of the base where it is on the Hub
 */
export function adapterCard(
  report: Pick<
    ExtractLoraReport,
    'base' | 'finetuned' | 'modules' | 'saved' | 'left' | 'merged' | 'notes' | 'parameters' | 'version'
  >,
  rankWords: string,
  hubBase: string | undefined,
): string {
  const { base, finetuned, modules, saved, left, merged, notes } = report;
  const front = yamlText({
    ...(hubBase === undefined ? {} : { base_model: hubBase }),
    library_name: 'peft',
    tags: ['lora', 'amalgam'],
  });
  const ranks = modules.map((m) => m.rank);
  const lines = [
    `A LoRA adapter extracted from ${nameCode(finetuned)} on the base ${nameCode(base)}, made with Amalgam ${markdownText(report.version)}.`,
    '',
    `* ${count(modules.length, 'module')} with factors, ${rankWords}: smallest ${Math.min(...ranks)}, largest ${Math.max(...ranks)}, ${count(report.parameters, 'parameter')}`,
    `* merged into the base it leaves ${real(merged.error)} of the difference (Frobenius norm; largest single error ${real(merged.maxError ?? 0)})`,
    ...(saved.length > 0 ? [`* ${count(saved.length, 'tensor')} carried whole (modules\\_to\\_save)`] : []),
    ...(left.length > 0 ? [`* ${count(left.length, 'change')} not carried, see below`] : []),
    ...notes.map((note) => `* ${markdownText(note)}`),
  ];
  const missing = left.map(
    ({ name, normDelta, why }) =>
      `* ${nameCode(name)}: ${markdownText(why)}${normDelta === null ? '' : ` (norm of the change ${real(normDelta)})`}`,
  );
  return `---
${front}---

# LoRA adapter

${lines.join('\n')}

    from peft import PeftModel
    model = PeftModel.from_pretrained(base_model, "this folder")
${missing.length > 0 ? `\n## What it does not carry\n\n${missing.join('\n')}\n` : ''}`;
}

// ---------------------------------------------------------------- to its destination

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
        return encoded(a.transposed ? transpose(rows, rank) : rows, dtype);
      }),
      inMemory(b.name, dtype, b.transposed ? [rank, outputs] : [outputs, rank, ...ones], () => {
        const rows = filledUp(factors.b.subarray(0, own * outputs), rank * outputs);
        return encoded(b.transposed ? rows : transpose(rows, rank), dtype);
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
