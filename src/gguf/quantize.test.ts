/** Types and bytes of every tensor are those of llama-quantize. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { hasLlama, llama } from '../../e2e/llama-cpp';
import { GGUF_TYPES, type GgufType } from '../formats/gguf-type';
import { parseModelConfig } from '../formats/model-config';
import { expectedTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolve';
import { FILE_TYPES } from './block-types';
import { byteLevelTokenizer } from './byte-tokenizer.test.support';
import { ggufEncoder, ggufFile } from './gguf-file';
import { planGguf } from './gguf-plan';
import { readGguf } from './read-gguf.test.support';

const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** A llama with rows that 256 divides, and rows that only 32 does, or nothing. */
function config(inner: number, tied: boolean): string {
  return JSON.stringify({
    model_type: 'llama',
    hidden_size: 256,
    intermediate_size: inner,
    num_hidden_layers: 8,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    head_dim: 16,
    vocab_size: 64,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: tied,
  });
}

async function written(text: string, type: GgufType): Promise<Uint8Array> {
  const tensors = expectedTensors(resolveArchitecture(parseModelConfig(text, 'config.json')));
  const plan = planGguf({
    type,
    name: 'noise',
    config: text,
    tokenizer: { tokenizer: byteLevelTokenizer(64) },
    tensors: tensors.map(({ name, shape }) => ({ name, shape, dtype: 'F32' })),
  });
  const order = tensors.map(({ name }) => name);
  const file = ggufFile('m.gguf', plan, order);
  const parts: Uint8Array[] = [file.header];
  const encoder = ggufEncoder(plan, order, async (bytes) => void parts.push(bytes.slice()));
  let state = 1;
  const noise = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state / 2 ** 32 - 0.5) * 0.1;
  };
  for (const { shape } of tensors) {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, noise);
    await encoder.append(new Uint8Array(values.buffer));
    await encoder.finishTensor();
  }
  return Buffer.concat(parts);
}

describe.runIf(hasLlama)('every tensor is as llama-quantize makes it', () => {
  test.each([
    [256, true, GGUF_TYPES],
    [96, false, ['Q4_K_M', 'Q5_K_M', 'Q6_K']],
    [40, false, ['Q8_0', 'Q4_K_M']],
  ] as const)('rows of 256, 32 and %i, tied: %s', async (inner, tied, types) => {
    const text = config(inner, tied);
    const source = join(scratch, 'source.gguf');
    writeFileSync(source, await written(text, 'F32'));
    for (const type of types) {
      if (type === 'F32') continue;
      const out = join(scratch, 'out.gguf');
      llama().quantizeFile(source, out, FILE_TYPES[type].id);
      const theirs = readGguf(Uint8Array.from(readFileSync(out)));
      const mine = readGguf(await written(text, type));
      expect(mine.metadata.get('general.file_type')).toBe(theirs.metadata.get('general.file_type'));
      expect([...mine.tensors.keys()].sort()).toEqual([...theirs.tensors.keys()].sort());
      for (const [name, { type: number, shape, bytes }] of mine.tensors) {
        const other = theirs.tensors.get(name)!;
        expect([name, number, shape]).toEqual([name, other.type, other.shape]);
        expect(Buffer.compare(bytes, other.bytes), `${type} ${name}`).toBe(0);
      }
    }
  });
});
