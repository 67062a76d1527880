import { join } from 'node:path';
import type { Backend } from '../src/backend/backend';
import { createCpuBackend } from '../src/backend/cpu/cpu-backend';
import { openPlannedWeights } from '../src/evaluate/planned-weights';
import { copyOf } from '../src/formats/recipe';
import { openRunner, type RunnerOptions } from '../src/forward/runner';
import { openModel } from '../src/inputs/opened-model';
import { readingRows } from '../src/inputs/row-reader';
import type { ReadTensor } from '../src/inputs/stored-tensor';
import { methodById } from '../src/merge/methods';
import { makePlan } from '../src/merge/plan/recipe-plan';
import { planShards } from '../src/merge/plan/shards';
import { runPlan } from '../src/merge/run/run';
import { bufferSource } from '../src/sources/byte-source';
import { findFile, type ModelFolder } from '../src/sources/model-folder';
import type { OpenedStack } from '../src/tools/collapse/search';
import { collapsePlan, type DepthModel, depthModel, type Stack } from '../src/tools/collapse/stack';
import { diskFolder } from './disk-folder';

export interface DepthInNode {
  model: DepthModel;
  /** Runs a stack whose weights are computed as they are read. */
  open(stack: Stack): Promise<OpenedStack>;
  /** Writes a stack to memory, as a folder that can be opened again. */
  write(stack: Stack, name: string): Promise<ModelFolder>;
}

/** A model on this machine's disk or in memory, ready to be collapsed: what the studio's worker does, in Node. */
export async function depthInNode(
  root: string,
  ref: string,
  options: RunnerOptions = {},
  engine: Backend = createCpuBackend(),
  inMemory: Readonly<Record<string, ModelFolder>> = {},
): Promise<DepthInNode> {
  const folders = new Map<string, ModelFolder>(Object.entries(inMemory));
  const plan = await makePlan(
    copyOf(ref),
    async (path) => {
      const folder = folders.get(path) ?? (await diskFolder(path, join(root, path)));
      folders.set(path, folder);
      return openModel(folder, path);
    },
    methodById,
  );
  const errors = plan.problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  const fileOf = (folder: string, file: string) => findFile(folders.get(folder)!, file)!;
  const model = depthModel(plan, fileOf);
  const read: ReadTensor = readingRows((at, begin, end) =>
    fileOf(at.folder, at.file)
      .open()
      .read(at.begin + begin, at.begin + end),
  );
  return {
    model,
    async open(stack) {
      const { plan: candidate, config } = collapsePlan(model, stack);
      const weights = await openPlannedWeights(candidate, [engine], read, false);
      const runner = openRunner(engine, config.architecture, weights, options);
      return {
        runner,
        close() {
          runner.close();
          weights.close();
        },
      };
    },
    async write(stack, name) {
      const { plan: candidate } = collapsePlan(model, stack);
      const shards = planShards(candidate.tensors, { format: 'pt' }, 2e9);
      const { shards: written } = await runPlan<Uint8Array<ArrayBuffer>>({
        plan: candidate,
        shards,
        engine,
        methods: methodById,
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
      const texts = candidate.extras.flatMap(({ path, content }) =>
        'text' in content ? [[path, new TextEncoder().encode(content.text)] as const] : [],
      );
      const contents = [...texts, ...written.map((bytes, i) => [shards[i]!.file, bytes] as const)];
      return {
        path: name,
        origin: { kind: 'local' },
        files: contents.map(([path, bytes]) => ({
          path,
          byteLength: bytes.length,
          open: () => bufferSource(bytes, path),
        })),
      };
    },
  };
}
