/** Small models of random rows whose tokenizers spell alike tokens otherwise, transplanted in memory. */

import { readTensors } from '../../../e2e/merge-in-node';
import { encodeFromF32 } from '../../formats/half';
import { copyOf } from '../../formats/recipe';
import { buildSafetensorsHeader } from '../../formats/safetensors-write';
import { openModels } from '../../host/models';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { FLAGS } from '../../merge/vocabulary/vocabulary.test.support';
import { planRecipe } from '../../recipe/recipe-jobs';
import { defaultsOf } from '../../reports/option';
import { fileSource } from '../../sources/file-source';
import type { ModelFolder } from '../../sources/model-folder';
import { openOutputFile } from '../../write/finished-outputs';
import { jobs } from './job';
import { type TransplantForm, transplantOptions } from './options';
import type { TransplantReport, TransplantRequest } from './report';

export interface Spec {
  /** Tokens of the model itself, by id. */
  tokens: readonly string[];
  /** Special tokens behind them. */
  special?: readonly string[];
  width: number;
  /** Rows of the embedding; default: one a token. */
  rows?: number;
  head?: boolean;
  dtype?: 'F32' | 'BF16';
  spelling: 'bytes' | 'marks';
  config?: Record<string, unknown>;
  settings?: Record<string, unknown>;
  files?: Record<string, string | object>;
  seed: number;
  /** Changes the values of the embedding. */
  change?(embedding: Float32Array): void;
}

/** Numbers in [−0.5, 0.5) that BF16 has, too. */
export function numbers(seed: number, count: number): Float32Array<ArrayBuffer> {
  let state = seed * 2654435761 + 1;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.round((state / 2 ** 32 - 0.5) * 256) / 256;
  });
}

const SPELLINGS = {
  bytes: {
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
    normalizer: null,
  },
  marks: {
    pre_tokenizer: null,
    decoder: { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }] },
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
  },
};

export function rowsOfSpec({ tokens, special = [], rows }: Spec): number {
  return rows ?? tokens.length + special.length;
}

/** Values of embedding and head. */
export function valuesOf(spec: Spec): { embedding: Float32Array; head: Float32Array } {
  const count = rowsOfSpec(spec) * spec.width;
  const embedding = numbers(spec.seed, count);
  spec.change?.(embedding);
  return { embedding, head: numbers(spec.seed + 1, count) };
}

export function folderOf(path: string, spec: Spec): ModelFolder {
  const { tokens, special = [], width, head = false, dtype = 'F32', spelling, config, settings } = spec;
  const rows = rowsOfSpec(spec);
  const values = valuesOf(spec);
  const norm = numbers(3, width);
  const all: [string, number[], Float32Array][] = [
    ['model.embed_tokens.weight', [rows, width], values.embedding],
    ...(head ? [['lm_head.weight', [rows, width], values.head] as [string, number[], Float32Array]] : []),
    ['model.norm.weight', [width], norm],
  ];
  const bytesOf = dtype === 'F32' ? 4 : 2;
  const header = buildSafetensorsHeader(
    all.map(([name, shape, { length }]) => ({ name, dtype, shape, byteLength: length * bytesOf })),
    {},
  );
  const file = new Uint8Array(
    header.length + all.reduce((sum, [, , { length }]) => sum + length * bytesOf, 0),
  );
  file.set(header);
  let at = header.length;
  for (const [, , own] of all) {
    encodeFromF32(own, dtype, file.subarray(at, at + own.length * bytesOf));
    at += own.length * bytesOf;
  }
  return memoryFolder(path, {
    'config.json': {
      model_type: 'llama',
      architectures: ['LlamaForCausalLM'],
      hidden_size: width,
      intermediate_size: 4,
      num_attention_heads: 1,
      num_hidden_layers: 0,
      vocab_size: rows,
      tie_word_embeddings: !head,
      torch_dtype: dtype === 'F32' ? 'float32' : 'bfloat16',
      rms_norm_eps: 1e-5,
      ...config,
    },
    'model.safetensors': file,
    'tokenizer.json': {
      version: '1.0',
      added_tokens: special.map((content, i) => ({ ...FLAGS, id: tokens.length + i, content })),
      post_processor: null,
      ...SPELLINGS[spelling],
      model: {
        type: 'BPE',
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges: [],
        byte_fallback: spelling === 'marks',
      },
    },
    ...(settings ? { 'tokenizer_config.json': settings } : {}),
    ...spec.files,
  });
}

export const formOf = (form: Partial<TransplantForm> = {}): TransplantForm => ({
  ...defaultsOf(transplantOptions),
  ...form,
});

export interface Outcome {
  report: TransplantReport;
  /** Every file by its name. */
  files: Map<string, Uint8Array<ArrayBuffer>>;
  /** Values of every tensor in f32, and their bytes. */
  tensors: Map<string, Float32Array>;
  bytes: Map<string, Uint8Array>;
  json(name: string): Record<string, unknown>;
}

/** Transplants in memory, in storage that is stubbed. */
export async function transplantIn(
  folders: { model: ModelFolder; donor: ModelFolder; more?: ModelFolder[] },
  form: Partial<TransplantForm> = {},
  request: Partial<TransplantRequest> = {},
): Promise<Outcome> {
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const folder of [folders.model, folders.donor, ...(folders.more ?? [])]) await models.add(folder);
  const name = `out-${outputs++}`;
  const report = await jobs.transplant(
    {
      ...{ model: folders.model.path, donor: folders.donor.path, form: formOf(form), engine: 'cpu' },
      destination: { kind: 'downloads', name },
      ...request,
    },
    models,
    new AbortController().signal,
    () => undefined,
    (model) => planRecipe(copyOf(model), models),
  );
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const path of report.files) {
    const source = fileSource(await openOutputFile(name, path), path);
    files.set(path, await source.read(0, source.byteLength));
  }
  const all = report.shards.flatMap(({ file }) => [...readTensors(files.get(file)!, file)]);
  const tensors = new Map(all.map(([key, { values }]) => [key, values]));
  const bytes = new Map(all.map(([key, tensor]) => [key, tensor.bytes]));
  const json = (path: string) =>
    JSON.parse(new TextDecoder().decode(files.get(path))) as Record<string, unknown>;
  return { report, files, tensors, bytes, json };
}

let outputs = 0;
