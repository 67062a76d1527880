/**
 * Fuzz targets that are more than one text: the tensors of an adapter, rows of a dataset, recipes in links. Parquet is none: its
 * reader is a library's and promises no 100 ms, so it runs in a thread with a deadline (src/foreign).
 */
import { readText } from '../../src/dataset/file-text';
import { parseRows } from '../../src/dataset/json-lines';
import type { Row } from '../../src/foreign/parquet';
import { parseAdapterConfig } from '../../src/formats/adapter-config';
import { readAdapterTensors } from '../../src/formats/adapter-tensors';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import type { StoredTensor } from '../../src/formats/safetensors-header';
import { bufferSource } from '../../src/sources/buffer-source';
import { ownTask } from '../../src/tasks/task';
import { buildItems } from '../../src/tasks/task-items';
import { recipeInLink, recipeLink } from '../../src/ui/state/recipe-draft';
import type { FuzzTarget } from './fuzz-target';

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

export const fileTargets: FuzzTarget[] = [
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
];
