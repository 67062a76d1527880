/** `adapter_model.safetensors` before it is written: factors in memory, whole tensors where they are stored. */

import { type Dtype, type WeightDtype, weightBytes } from '../../formats/dtype';
import { markdownText, nameCode } from '../../formats/model-card';
import { ADAPTER_WEIGHTS } from '../../formats/peft-config';
import { buildSafetensorsHeader, sortForFile } from '../../formats/safetensors-write';
import { yamlText } from '../../formats/yaml-text';
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { TensorRef } from '../../inputs/tensor-view';
import type { ByteSource } from '../../sources/byte-source';
import type { ShardPlan } from '../../write/shard-plan';
import { count, real } from '../difference/findings';
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
