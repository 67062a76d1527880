/** Types and bytes of every tensor are those of llama-quantize. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { GGUF_TYPES, type GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import { scratchFolder } from '../scratch-folder.test.support';
import { FILE_TYPES } from './block-types';
import { ggufEncoder, ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { readGguf } from './read-gguf.test.support';
import { byteLevelTokenizer } from './tokenizer.test.support';

const scratch = scratchFolder();

/** Rows that 256 divides, and rows that only 32 does, or nothing; of experts as many as named. */
function config(inner: number, tied: boolean, layers: number, type = 'llama', experts = 0): string {
  return JSON.stringify({
    model_type: type,
    ...(experts > 0 ? { num_local_experts: experts, num_experts_per_tok: 2 } : {}),
    hidden_size: 256,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    head_dim: 16,
    vocab_size: 64,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: tied,
  });
}

const tensorsOf = (text: string) =>
  expectedTensors(resolveArchitecture(parseModelConfig(text, 'config.json')));

function planned(text: string, type: GgufType, isWeighted: boolean) {
  return planGguf({
    type,
    name: 'noise',
    config: text,
    tokenizer: { tokenizer: byteLevelTokenizer(64) },
    tensors: tensorsOf(text).map(({ name, shape }) => ({ name, shape, dtype: 'F32' })),
    isWeighted,
  });
}

const known = new Map<string, Map<string, Uint8Array<ArrayBuffer>>>();

/** Bytes of every tensor, in the order of the names; noise, drawn once for all types. */
function valuesOf(text: string, order: readonly string[]): Map<string, Uint8Array<ArrayBuffer>> {
  const found = known.get(text);
  if (found) return found;
  let state = 1;
  const noise = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 - 0.5) * 0.1;
  };
  const shapes = new Map(tensorsOf(text).map(({ name, shape }) => [name, shape]));
  const made = new Map(
    order.map((name) => {
      const values = new Float32Array(shapes.get(name)!.reduce((a, b) => a * b, 1));
      for (let i = 0; i < values.length; i++) values[i] = noise();
      return [name, new Uint8Array(values.buffer)];
    }),
  );
  known.set(text, made);
  return made;
}

/** A weight for every column of every matrix in a block, by the architecture's name. */
function importanceOf(text: string): Map<string, Float32Array<ArrayBuffer>> {
  const matrices = tensorsOf(text).filter(({ name, shape }) => shape.length === 2 && name.includes('layers'));
  return new Map(
    matrices.map(({ name, shape }, k) => [
      name,
      Float32Array.from({ length: shape[1]! }, (_, i) => 1e-3 + Math.sin(i * 7 + k) ** 2),
    ]),
  );
}

async function written(
  text: string,
  type: GgufType,
  importance?: Map<string, Float32Array<ArrayBuffer>>,
): Promise<Uint8Array> {
  const plan = planned(text, type, importance !== undefined);
  const order = [...plan.tensors.keys()];
  const file = ggufFile('m.gguf', plan, order);
  const parts: Uint8Array[] = [file.header];
  const encoder = ggufEncoder({
    plan,
    names: order,
    engines: [createCpuBackend(), createCpuBackend()],
    ...(importance ? { importance } : {}),
    write: async (bytes) => void parts.push(bytes.slice()),
  });
  const values = valuesOf(text, order);
  for (const name of order) {
    await encoder.append(values.get(name)!.slice());
    await encoder.finishTensor();
  }
  return Buffer.concat(parts);
}

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('every tensor is as llama-quantize makes it', () => {
  test.each([
    // of eight blocks the first, some in the middle and the last get more bits, of four the last two
    [256, true, 8, GGUF_TYPES],
    [96, false, 4, ['Q4_K_M', 'Q5_K_M', 'Q6_K']],
    [40, false, 4, ['Q8_0', 'Q4_K_M']],
    [256, false, 4, ['Q4_0', 'Q4_K_M', 'Q5_K_M', 'Q6_K'], 'weighted'],
    [96, true, 4, ['Q4_0', 'Q4_K_M', 'Q5_K_M', 'Q6_K'], 'weighted'],
    [32, false, 4, ['Q8_0', 'Q4_0', 'Q4_K_M', 'Q5_K_M', 'Q6_K'], 'mixtral', 8],
    [32, false, 4, ['F16', 'Q8_0', 'Q4_K_M'], 'granitemoe', 3],
    [32, false, 4, ['F16', 'Q8_0', 'Q4_K_M'], 'gpt_oss', 3],
  ] as const)(
    'rows of 256, 32 and %i, tied: %s, %i blocks, %s %s',
    async (inner, tied, layers, types, more?: string, experts?: number) => {
      const weighted = more === 'weighted';
      const text = config(inner, tied, layers, weighted ? undefined : more, experts);
      const source = join(scratch, 'source.gguf');
      writeFileSync(source, await written(text, 'F32'));
      for (const type of types) {
        if (type === 'F32') continue;
        const out = join(scratch, 'out.gguf');
        const importance = weighted ? importanceOf(text) : undefined;
        const names = planned(text, type, weighted).tensors;
        const imatrix = importance && new Map([...importance].map(([k, v]) => [names.get(k)!.name, v]));
        llama().quantizeFile(source, out, FILE_TYPES[type].id, imatrix);
        const theirs = readGguf(Uint8Array.from(readFileSync(out)));
        const mine = readGguf(await written(text, type, importance));
        expect(mine.metadata.get('general.file_type')).toBe(theirs.metadata.get('general.file_type'));
        expect([...mine.tensors.keys()].sort()).toEqual([...theirs.tensors.keys()].sort());
        for (const [name, { type: number, shape, bytes }] of mine.tensors) {
          const other = theirs.tensors.get(name)!;
          expect([name, number, shape]).toEqual([name, other.type, other.shape]);
          expect(Buffer.compare(bytes, other.bytes), `${type} ${name}`).toBe(0);
        }
      }
    },
  );
});
