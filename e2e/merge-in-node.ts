import { isAbsolute, join } from 'node:path';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { isWeightDtype } from '../src/formats/dtype';
import { decodeToF32 } from '../src/formats/half';
import { parseRecipe } from '../src/formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../src/formats/safetensors-header';
import { type ColumnImportance, ggufEncoder } from '../src/gguf/gguf-file';
import { openModel } from '../src/inputs/opened-model';
import { readingRows } from '../src/inputs/row-reader';
import { inputName, type ReadTensor } from '../src/inputs/stored-tensor';
import { methodById } from '../src/merge/methods';
import { finishGguf } from '../src/merge/plan/finished-gguf';
import type { Plan } from '../src/merge/plan/plan';
import { makePlan } from '../src/merge/plan/recipe-plan';
import { finishShards } from '../src/merge/plan/shards';
import { runPlan } from '../src/merge/run/run';
import type { Prepared } from '../src/merge/tensor/prepared';
import type { TensorReport } from '../src/reports/job';
import type { ModelFolder } from '../src/sources/model-folder';
import { diskFolder } from './disk-folder';

/** A safetensors file taken apart: f32 values of every weight tensor, and the bytes as they are. */
export type Tensors = Map<
  string,
  { dtype: string; shape: number[]; values: Float32Array; bytes: Uint8Array }
>;

export function readTensors(file: Uint8Array<ArrayBuffer>, name: string): Tensors {
  const end = 8 + headerLength(file.subarray(0, 8), file.length, name);
  const { tensors } = parseSafetensorsHeader(file.slice(8, end), file.length, name);
  return new Map(
    [...tensors].map(([key, { dtype, shape, begin, end: last }]) => {
      const bytes = file.slice(begin, last);
      const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
      if (isWeightDtype(dtype)) decodeToF32(bytes, dtype, values);
      return [key, { dtype, shape: [...shape], values, bytes }];
    }),
  );
}

/** Models of a recipe by name: a path under `root`, or a folder that is open already. */
export type NamedFolders = Readonly<Record<string, string | ModelFolder>>;

export async function namedFolder(name: string, root: string, folders: NamedFolders): Promise<ModelFolder> {
  const where = folders[name] ?? name;
  if (typeof where !== 'string') return where;
  return diskFolder(name, isAbsolute(where) ? where : join(root, where));
}

/** The plan of a recipe over folders of this machine, and how its tensors are read. */
export async function planInNode(
  recipeText: string,
  root: string,
  folders: NamedFolders,
): Promise<{ plan: Plan; read: ReadTensor }> {
  const { recipe, problems } = parseRecipe(recipeText);
  if (!recipe) throw new Error(problems.map((p) => `${p.line}: ${p.message}`).join('\n'));
  const opened = new Map<string, ModelFolder>();
  const folderOf = async (name: string) => {
    const folder = await namedFolder(name, root, folders);
    opened.set(name, folder);
    return folder;
  };
  const plan = await makePlan(recipe, async (name) => openModel(await folderOf(name), name), methodById);
  const errors = plan.problems.filter((p) => p.severity === 'error');
  if (errors.length > 0) throw new Error(errors.map((p) => p.message).join('\n'));
  const read: ReadTensor = readingRows((ref, begin, end) =>
    opened
      .get(ref.folder)!
      .files.find((f) => f.path === ref.file)!
      .open()
      .read(ref.begin + begin, ref.begin + end),
  );
  return { plan, read };
}

/**
 * Runs a recipe on the typed-array engine in Node, with models taken from `folders` (name → path under `root`):
 * plan and run are the studio's own; only the files around them are this machine's.
 */
export async function mergeInNode(
  recipeText: string,
  root: string,
  folders: NamedFolders,
  tileElements?: number,
  prepared?: Prepared,
): Promise<{ tensors: Tensors; reports: TensorReport[]; shards: Uint8Array[]; config: string | undefined }> {
  const { plan, read } = await planInNode(recipeText, root, folders);
  if (prepared) plan.calibration?.take(prepared);
  const shards = finishShards(
    plan,
    new Map(plan.inputs.map((i) => [inputName(i.folder, i.file), 'f'.repeat(64)])),
  );
  const { tensors: reports, shards: written } = await runPlan({
    plan,
    shards,
    engine: createCpuBackend(),
    methods: methodById,
    ...(tileElements === undefined ? {} : { tileElements }),
    ...(prepared ? { prepared } : {}),
    read,
    openShard: async (shard) => {
      const bytes = new Uint8Array(shard.byteLength);
      bytes.set(shard.header);
      return {
        async write(piece, at) {
          bytes.set(piece, at);
        },
        finish: async () => bytes,
        abort() {},
      };
    },
  });
  const tensors: Tensors = new Map(written.flatMap((file, i) => [...readTensors(file, shards[i]!.file)]));
  const config = plan.extras.find((e) => e.path === 'config.json')?.content;
  return { tensors, reports, shards: written, config: config && 'text' in config ? config.text : undefined };
}

/** Runs a recipe whose output is GGUF alone; the file's bytes, and the plan. */
export async function ggufInNode(
  recipeText: string,
  root: string,
  folders: NamedFolders,
  importance?: ColumnImportance,
): Promise<{ plan: Plan; bytes: Uint8Array<ArrayBuffer> }> {
  const { plan, read } = await planInNode(recipeText, root, folders);
  const gguf = plan.gguf!;
  const file = finishGguf({ ...plan, gguf }, [], undefined, new Map());
  const bytes = new Uint8Array(file.byteLength);
  bytes.set(file.header);
  let came = file.header.length;
  const engines = [createCpuBackend()];
  await runPlan({
    plan,
    shards: [file],
    engine: createCpuBackend(),
    methods: methodById,
    read,
    encoding: {
      encoder: (names, write) =>
        ggufEncoder({ plan: gguf, names, engines, ...(importance ? { importance } : {}), write }),
    },
    openShard: async () => ({
      async write(piece, at) {
        bytes.set(piece, at);
        came += piece.length;
      },
      finish: async () => undefined,
      abort() {},
    }),
  });
  if (came !== bytes.length) throw new Error(`${came} of ${bytes.length} bytes of ${file.file} came`);
  return { plan, bytes };
}

/** Largest |a − b| over all elements, and the same relative to the largest |b| of the tensor. */
export function largestDifference(a: Float32Array, b: Float32Array): { absolute: number; relative: number } {
  if (a.length !== b.length) return { absolute: Infinity, relative: Infinity };
  let absolute = 0;
  let size = 0;
  for (let i = 0; i < a.length; i++) {
    absolute = Math.max(absolute, Math.abs(a[i]! - b[i]!));
    size = Math.max(size, Math.abs(b[i]!));
  }
  return { absolute, relative: size > 0 ? absolute / size : absolute };
}
