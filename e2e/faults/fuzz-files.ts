/** Fuzz targets that are more than one text: the tensors of an adapter, files of a dataset, recipes in links. */
import { readFileSync } from 'node:fs';
import { readText } from '../../src/dataset/file-text';
import { parseRows } from '../../src/dataset/json-lines';
import type { Row } from '../../src/dataset/rows';
import { parseAdapterConfig } from '../../src/formats/adapter-config';
import { readAdapterTensors } from '../../src/formats/adapter-tensors';
import { parseRecipe } from '../../src/formats/recipe-yaml';
import type { StoredTensor } from '../../src/formats/safetensors-header';
import { bufferSource } from '../../src/sources/buffer-source';
import { parseYaml, readTask } from '../../src/tasks/task-file';
import { buildItems } from '../../src/tasks/task-items';
import { recipeInLink, recipeLink } from '../../src/ui/local/recipe-link';
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

const parquet = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../fixtures/dataset/${name}.parquet`, import.meta.url)));

/** Reads a file of a dataset; what is taken holds no more than was asked for. */
async function readsText(bytes: Uint8Array<ArrayBuffer>, path: string): Promise<string | undefined> {
  const { text, rows } = await readText(bufferSource(bytes), path, path, { characters: 1000, rows: 20 });
  if (text.length > 1000) return `${text.length} characters`;
  return rows <= 20 ? undefined : `${rows} rows`;
}

/** A file of a task and a row of its data, parted by a form feed. */
const TASKS = [
  'task: mine\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: multiple_choice\ntest_split: test\ndoc_to_text: "Q: {{question}}\\nA:"\ndoc_to_target: answer\ndoc_to_choice: "{{choices}}"\nnum_fewshot: 0\nfewshot_config: { sampler: first_n }\nmetric_list: [{ metric: acc }]\nmetadata: { version: 1.0 }\n\f{"question":"Why?","choices":["a","b"],"answer":1}',
  'task: theirs\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: multiple_choice\nprocess_docs: !function hellaswag.process_docs\ndoc_to_text: "{{query}}"\ndoc_to_target: "{{label}}"\ndoc_to_choice: choices\n\f{"ctx_a":"A","ctx_b":"b","activity_label":"C","endings":["x [title] y","z"],"label":"0"}',
  'task: t\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: multiple_choice\ndoc_to_text: ""\ndoc_to_target: "{{ [0] if a.b == 1 else [1] }}"\ndoc_to_choice: [x, y]\nprocess_results: !function truthfulqa.process_results_mc2\n\f{"mc2_targets":{"labels":[0,1]},"a":{"b":1}}',
  'task: u\ndataset_path: json\ndataset_kwargs: { data_files: rows.jsonl }\noutput_type: loglikelihood\ndoc_to_text: "{{ text.split(\' \')[:-1] | join(\' \') }}"\ndoc_to_target: "{% for c in choices %}{{ loop.index }}{% endfor %}"\n\f{"text":"one two","choices":[1,2]}',
];

async function rowsOf(text: string): Promise<Row[]> {
  const rows: Row[] = [];
  async function* whole() {
    yield text;
  }
  for await (const { fields } of parseRows(whole(), 'rows.jsonl')) rows.push(fields as Row);
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
    name: 'task file',
    seeds: TASKS,
    runs: 100_000,
    async parse(bytes) {
      const [yaml = '', line = ''] = new TextDecoder().decode(bytes).split('\f');
      const task = readTask(parseYaml(yaml, 'task.yaml'), 'task.yaml');
      const rows = await rowsOf(line);
      const how = { limit: 1, sampleSeed: null, fewshot: 0, fewshotSeed: 1 };
      const [item] = await buildItems(task, { rows, examples: rows, name: 'rows' }, how);
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
    name: 'parquet',
    seeds: ['plain', 'snappy', 'zstd', 'brotli-delta', 'gzip-lengths', 'lz4-pages2'].map(parquet),
    runs: 100_000,
    parse: (bytes) => readsText(bytes, 'train.parquet'),
  },
];
