/**
 * Every parser of foreign files, with sound inputs to damage and the invariants of accepted ones. Parquet is none: its reader is
 * a library's and promises no 100 ms, so it runs in a thread with a deadline (src/foreign).
 */
import { isDeepStrictEqual } from 'node:util';
import { readText } from '../../src/dataset/file-text';
import { parseRows } from '../../src/dataset/json-lines';
import type { Row } from '../../src/foreign/parquet';
import { parseAdapterConfig } from '../../src/formats/adapter-config';
import { readAdapterTensors } from '../../src/formats/adapter-tensors';
import { DTYPE_BITS, type Dtype } from '../../src/formats/dtype';
import { parseHubId } from '../../src/formats/hub-id';
import { parseModelConfig } from '../../src/formats/model-config';
import { safeRelativePath } from '../../src/formats/names';
import { formatRecipe } from '../../src/formats/recipe-format';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import {
  headerLength,
  parseSafetensorsHeader,
  type StoredTensor,
} from '../../src/formats/safetensors-header';
import { parseShardIndex } from '../../src/formats/shard-index';
import { parseJson } from '../../src/formats/strict-json';
import { matchesTensor } from '../../src/formats/tensor-pattern';
import { readTokenizerJson } from '../../src/formats/tokenizer-json';
import { bufferSource } from '../../src/sources/byte-source';
import { announcedWaitMs } from '../../src/sources/transfer';
import { parseRecord } from '../../src/store/blob-record';
import { ownTask } from '../../src/tasks/shipped';
import { buildItems } from '../../src/tasks/task-items';
import { recipeInLink, recipeLink } from '../../src/ui/state/recipe-draft';
import { ggufTargets } from './fuzz-gguf';

export interface FuzzTarget {
  name: string;
  /** Sound inputs. */
  seeds: (string | Uint8Array<ArrayBuffer>)[];
  /** Parses; resolves to the reason why accepting it was wrong, or undefined. Throws AmalgamError to refuse. */
  parse(bytes: Uint8Array<ArrayBuffer>): string | undefined | Promise<string | undefined>;
  /** At least so many mutations in the long run. */
  runs: number;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const encoder = new TextEncoder();

const HEADERS = [
  '{}',
  '{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}',
  '{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},"b":{"dtype":"I64","shape":[],"data_offsets":[6,14]}}',
  '{"__proto__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"é\\u0301":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}   ',
];
/** Bytes of data behind each of {@link HEADERS}. */
const DATA_BYTES = [0, 16, 14, 4];

/**
 * Whether the Rust reader (safetensors `tensor.rs`, `read_metadata` and `validate`) takes this header before `data`
 * bytes: JSON object, known dtypes, every tensor where the last one ended, sizes that follow from the shapes.
 */
function rustTakes(json: string, data: number): boolean {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return false;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const tensors: { begin: number; end: number }[] = [];
  for (const [name, info] of Object.entries(value)) {
    if (name === '__metadata__') {
      if (
        info !== null &&
        (typeof info !== 'object' || Object.values(info).some((v) => typeof v !== 'string'))
      )
        return false;
      continue;
    }
    const { dtype, shape, data_offsets: offsets } = (info ?? {}) as Record<string, unknown>;
    if (typeof dtype !== 'string' || !Object.hasOwn(DTYPE_BITS, dtype)) return false;
    if (!isIndices(shape) || !isIndices(offsets) || offsets.length !== 2) return false;
    const [begin, end] = offsets as [number, number];
    const bits = shape.reduce((n, d) => n * BigInt(d), BigInt(DTYPE_BITS[dtype as Dtype]));
    if (bits !== 8n * BigInt(end - begin)) return false;
    tensors.push({ begin, end });
  }
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = 0;
  for (const { begin, end } of tensors) {
    if (begin !== at || end < begin) return false;
    at = end;
  }
  return at === data;
}

function isIndices(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0 && !Object.is(n, -0));
}

/** A path that stays where it is put, on every system. */
function staysInside(path: string): boolean {
  const parts = path.split('/');
  return !/[\\:\0]/.test(path) && parts.every((part) => part !== '' && part !== '.' && part !== '..');
}

const adapter = parseAdapterConfig(
  '{"peft_type":"LORA","r":8,"lora_alpha":16,"target_modules":["q_proj","v_proj","embed_tokens"],"modules_to_save":["lm_head"],"use_dora":true,"bias":"none"}',
  'adapter_config.json',
);
const layer = 'base_model.model.model.layers.0.self_attn';
const ADAPTERS = [
  `${layer}.q_proj.lora_A.weight 8,64\n${layer}.q_proj.lora_B.weight 32,8\n${layer}.q_proj.lora_magnitude_vector 32`,
  `${layer}.v_proj.lora_A.default.weight 8,64\n${layer}.v_proj.lora_B.default.weight 32,8\n${layer}.v_proj.lora_magnitude_vector.default.weight 32\nbase_model.model.lm_head.weight 100,64`,
];

/** Tensors from lines of a name and its dimensions. */
function tensorsOf(text: string): Map<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  for (const line of text.split('\n')) {
    const at = line.lastIndexOf(' ');
    const name = line.slice(0, Math.max(at, 0));
    const shape = line
      .slice(at + 1)
      .split(',')
      .map(Number)
      .filter(Number.isSafeInteger);
    tensors.set(name, { name, dtype: 'F32', shape, begin: 0, end: 0 });
  }
  return tensors;
}

const RECIPES = [
  'merge_method: linear\nmodels:\n  - model: a/b\n    parameters: {weight: 1}\n',
  'merge_method: ties\nbase_model: a/b\nmodels:\n  - model: c/d\n    parameters: {density: 0.2}\n',
];
const links = await Promise.all(
  RECIPES.map(async (yaml) => new URL(await recipeLink(yaml, 'https://studio.example/')).hash),
);

/** Reads a file of a dataset; what is taken holds no more than was asked for. */
async function readsText(bytes: Uint8Array<ArrayBuffer>, path: string): Promise<string | undefined> {
  const { text, rows } = await readText(bufferSource(bytes), path, path, { characters: 1000, rows: 20 });
  if (text.length > 1000) return `${text.length} characters`;
  return rows <= 20 ? undefined : `${rows} rows`;
}

const ROWS = [
  '{"question":"Why?","choices":["a","b"],"answer":1}\n{"question":"How?","choices":["no","yes"],"answer":true}',
  '{"question":"Why?","choices":["a","b"],"answer":"b","loss":NaN}',
];

async function rowsOf(text: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const row of parseRows([text], 'rows.jsonl')) rows.push(row);
  return rows;
}

export const fuzzTargets: FuzzTarget[] = [
  {
    name: 'adapter tensors',
    seeds: ADAPTERS,
    runs: 100_000,
    parse(bytes) {
      const tensors = tensorsOf(new TextDecoder().decode(bytes));
      const { lowRank, origins, replaces, ignored } = readAdapterTensors(adapter, tensors);
      let used = origins.size + replaces.size + ignored.length;
      for (const { a, b, magnitude, bias, rank } of lowRank.values()) {
        used += 2 + (magnitude ? 1 : 0) + (bias ? 1 : 0);
        if (a.shape[0] !== rank || b.shape[1] !== rank) return `rank ${rank} of ${a.shape} and ${b.shape}`;
      }
      return used === tensors.size ? undefined : `${used} of ${tensors.size} tensors are used`;
    },
  },
  {
    name: 'recipe in a link',
    seeds: links,
    runs: 100_000,
    async parse(bytes) {
      const yaml = await recipeInLink(new TextDecoder().decode(bytes));
      if (yaml === undefined) return undefined;
      const { recipe, problems } = parseRecipe(yaml);
      return recipe || problems.length > 0 ? undefined : 'neither recipe nor problem';
    },
  },
  {
    name: 'rows of a task',
    seeds: ROWS,
    runs: 100_000,
    async parse(bytes) {
      const lines = new TextDecoder().decode(bytes);
      const rows = await rowsOf(lines);
      const how = { limit: 1, sampleSeed: null, fewshot: 0, fewshotSeed: 1 };
      const [item] = buildItems(ownTask('rows.jsonl', lines), { rows, examples: rows, name: 'rows' }, how);
      return item?.docId === 0 ? undefined : 'no item';
    },
  },
  {
    name: 'dataset lines',
    seeds: ['{"text":"one","id":1}\n{"text":"two\\u00e9","id":2}\n', '{"a":"x","text":null}\n\n{"text":"y"}'],
    runs: 100_000,
    parse: (bytes) => readsText(bytes, 'train.jsonl'),
  },
  {
    name: 'safetensors header',
    seeds: HEADERS,
    runs: 1_000_000,
    parse(bytes) {
      // the data that belongs to the seed it was made from, if any: its end is where the offsets end
      const json = text(bytes);
      const data = DATA_BYTES[HEADERS.findIndex((h) => json.slice(0, 12) === h.slice(0, 12))] ?? 16;
      parseSafetensorsHeader(bytes, 8 + bytes.length + data, 'w');
      return rustTakes(json, data) ? undefined : 'the Rust reader refuses it';
    },
  },
  {
    name: 'safetensors header length',
    seeds: ['\x10\0\0\0\0\0\0\0', '\0\0\0\0\0\0\0\x80', '\x01\xe1\xf5\x05\0\0\0\0'],
    runs: 100_000,
    parse(bytes) {
      const file = 1000;
      const length = headerLength(bytes, file);
      return length >= 0 && 8 + length <= file ? undefined : `a header of ${length} in ${file} bytes`;
    },
  },
  {
    name: 'shard index',
    seeds: [
      '{"metadata":{"total_size":12},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}',
    ],
    runs: 100_000,
    parse(bytes) {
      const weightMap = parseShardIndex(text(bytes), 'i');
      const outside = [...weightMap.values()].find((file) => !staysInside(file));
      return outside === undefined ? undefined : `${outside} leads out`;
    },
  },
  {
    name: 'relative path',
    seeds: ['model.safetensors', 'sub/dir/model.safetensors', '../x', 'C:\\x', '%2e%2e/x', 'a/../../x'],
    runs: 100_000,
    parse(bytes) {
      const path = safeRelativePath(text(bytes));
      return staysInside(path) ? undefined : `${path} leads out`;
    },
  },
  {
    name: 'adapter config',
    seeds: [
      '{"peft_type":"LORA","r":8,"lora_alpha":16,"target_modules":["q_proj","v_proj"],"rank_pattern":{"layers.0":4},"use_rslora":false,"bias":"none","base_model_name_or_path":"a/b"}',
      '{"peft_type":"LOKR","r":4,"alpha":8,"decompose_factor":-1,"target_modules":"all-linear"}',
      '{"peft_type":"FOURIERFT","n_frequency":100,"scaling":150,"random_loc_seed":777,"n_frequency_pattern":{"q_proj":10}}',
      '{"fine_tune_type":"lora","num_layers":4,"lora_parameters":{"rank":8,"scale":20.0,"dropout":0.0}}',
    ],
    runs: 100_000,
    parse(bytes) {
      const { type, rank } = parseAdapterConfig(text(bytes), 'adapter_config.json');
      // kinds other than LoRA may have no rank
      const least = type === 'LORA' ? 1 : 0;
      return Number.isSafeInteger(rank) && rank >= least ? undefined : `rank ${rank}`;
    },
  },
  {
    name: 'tensor pattern',
    seeds: ['*', 'mlp', 'model.layers.*.mlp.?p_proj.*', '*a*a*a*a*a*a*a*a*b'],
    runs: 100_000,
    parse(bytes) {
      matchesTensor(text(bytes), 'model.layers.11.self_attn.q_proj.weight'.padEnd(400, 'a'));
      return undefined;
    },
  },
  {
    name: 'model config',
    seeds: [
      '{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":64,"num_hidden_layers":2,"vocab_size":100,"tie_word_embeddings":true,"torch_dtype":"bfloat16","rope_theta":10000.0}',
    ],
    runs: 100_000,
    parse(bytes) {
      parseModelConfig(text(bytes), 'config.json');
      return undefined;
    },
  },
  {
    name: 'recipe YAML',
    seeds: [
      'merge_method: ties\nbase_model: a/b\nmodels:\n  - model: c/d\n    parameters: {weight: 0.5, density: [0.1, 0.9]}\nparameters: {normalize: true}\ndtype: bfloat16\n',
      'merge_method: passthrough\nslices:\n  - sources:\n      - model: a/b\n        layer_range: [0, 4]\namalgam: {seed: 3, shard_bytes: 1000000}\n',
    ],
    runs: 100_000,
    parse(bytes) {
      const { recipe, problems } = parseRecipe(text(bytes));
      if (!recipe) return problems.length > 0 ? undefined : 'neither recipe nor problem';
      if (problems.length > 0) return undefined;
      const again = parseRecipe(formatRecipe(recipe));
      return isDeepStrictEqual(again.recipe, recipe) ? undefined : 'written and read again it differs';
    },
  },
  {
    name: 'JSON',
    seeds: ['{"a":[1,2.5,-3e4,"\\u00e9",null,true],"b":{"c":{}}}', '[[[[[[]]]]]]', '"x"'],
    runs: 100_000,
    parse(bytes) {
      const json = text(bytes);
      return JSON.stringify(parseJson(json, 'f')) === JSON.stringify(JSON.parse(json))
        ? undefined
        : 'read otherwise';
    },
  },
  {
    name: 'tokenizer.json',
    seeds: [
      '{"version":"1.0","added_tokens":[{"id":2,"content":"<s>","special":true}],"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}}',
      '{"model":{"type":"Unigram","vocab":[["a",-1.5],["b",-2]]}}',
    ],
    runs: 100_000,
    parse(bytes) {
      const { ids } = readTokenizerJson(text(bytes), 'tokenizer.json');
      const odd = [...ids.values()].find((id) => !Number.isSafeInteger(id) || id < 0);
      return odd === undefined ? undefined : `id ${odd}`;
    },
  },
  ...ggufTargets,
  {
    name: 'Hub id',
    seeds: [
      'owner/name',
      'https://huggingface.co/owner/name/tree/main',
      'owner/name@v1.0',
      'javascript:alert(1)',
    ],
    runs: 100_000,
    parse(bytes) {
      const { id } = parseHubId(text(bytes));
      return /^[\w.-]+(\/[\w.-]+)?$/.test(id) && staysInside(id) ? undefined : `the id ${JSON.stringify(id)}`;
    },
  },
  {
    name: 'blob record',
    seeds: [
      `{"version":2,"sha256":"${'a'.repeat(64)}","byteLength":10,"name":"n","pieceBytes":4,"pieces":["${'b'.repeat(32)}","${'.'.repeat(32)}","${'c'.repeat(32)}"]}`,
    ],
    runs: 100_000,
    parse(bytes) {
      const record = parseRecord(bytes, 'a'.repeat(64));
      if (!record) return undefined;
      const pieces = Math.ceil(record.byteLength / record.pieceBytes);
      return record.pieces.length === pieces ? undefined : `${record.pieces.length} pieces of ${pieces}`;
    },
  },
  {
    name: 'announced wait',
    seeds: ['"resolvers";r=0;t=55', '120', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    runs: 100_000,
    parse(bytes) {
      // a header value holds no line breaks and no bytes beyond Latin-1
      const value = text(bytes).replace(/[^\x20-\x7e]/g, '');
      for (const name of ['RateLimit', 'Retry-After']) {
        const wait = announcedWaitMs(new Headers({ [name]: value }));
        if (wait !== undefined && !(wait >= 0)) return `a wait of ${wait} ms`;
      }
      return undefined;
    },
  },
];

/** The seeds as bytes. */
export function seedBytes(target: FuzzTarget): Uint8Array<ArrayBuffer>[] {
  return target.seeds.map((seed) =>
    typeof seed !== 'string'
      ? seed
      : target.name === 'safetensors header length'
        ? Uint8Array.from(seed, (c) => c.charCodeAt(0))
        : encoder.encode(seed),
  );
}
