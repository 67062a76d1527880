/** One merge from a clean plan to a committed output: download, hash, run, small files, index last. */
import type { ComputeEngine } from '../compute/engine';
import { AmalgamError } from '../errors';
import { formatRecipe } from '../formats/recipe-yaml';
import { buildShardIndex } from '../formats/shard-index';
import { methodById } from '../merge/methods';
import type { Plan, ShardPlan } from '../merge/plan';
import { runPlan } from '../merge/run';
import { finishShards, inputName, SHARD_INDEX } from '../merge/shards';
import { AMALGAM_VERSION } from '../merge/version';
import { sha256Of } from '../sources/sha256';
import { openCached } from '../store/cached-source';
import type { Destination } from '../write/destination';
import { openDestination } from '../write/open-destination';
import { ShardWriter, type WrittenShard } from '../write/shard-writer';
import { openEngine } from './choose-engine';
import { type Inputs, openInputs } from './inputs';
import type { OpenModels } from './models';
import { type ProgressMeter, progressMeter } from './progress';
import type { MergeReport, MergeRequest, Progress } from './protocol';

/**
 * Runs a merge. Whatever fails, the destination is discarded: nothing that looks complete is left.
 * @throws AmalgamError `PlanHasErrors`, `Cancelled`, and what sources, engine and destination throw
 */
export async function runMerge(
  plan: Plan,
  request: MergeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<MergeReport> {
  requireClean(plan);
  const begin = performance.now();
  let engine: ComputeEngine | undefined;
  const meter = progressMeter(onProgress, () => engine);
  let inputs: Inputs | undefined;
  let destination: Destination | undefined;
  try {
    // what can refuse does so before anything is downloaded
    engine = await openEngine(request.engine);
    destination = await openDestination(request.destination);
    if (plan.bytesToDownload > 0) meter.begin('downloading', plan.bytesToDownload, 0);
    inputs = await openInputs(plan, models, signal, (bytes, name) => meter.advance(bytes, name));
    const hashes = await hashInputs(plan, models, inputs, meter, signal);
    const shardPlans = finishShards(plan, hashes);
    const { tensors, shards } = await mergeShards({
      plan,
      shardPlans,
      request,
      engine,
      destination,
      inputs,
      meter,
      signal,
    });
    await writeSmallFiles(plan, models, destination, signal);
    if (shards.length > 1) await writeIndex(destination, shardPlans);
    await destination.commit();
    meter.flush();
    return {
      recipe: plan.recipe,
      recipeSha256: await textSha256(formatRecipe(plan.recipe)),
      engine: engine.kind,
      adapter: engine.adapter,
      version: AMALGAM_VERSION,
      seconds: (performance.now() - begin) / 1000,
      stages: meter.stages(),
      peakBytes: plan.peakBytes,
      inputs: plan.inputs.map(({ folder, file }) => ({
        id: folder,
        file,
        sha256: hashes.get(inputName(folder, file))!,
      })),
      shards: shards.map(({ file, bytes, sha256 }) => ({ file, bytes, sha256 })),
      tensors,
    };
  } catch (error) {
    await destination?.discard();
    throw error;
  } finally {
    inputs?.close();
    engine?.close();
  }
}

/** @throws AmalgamError `PlanHasErrors` with the first error's words and remedy */
export function requireClean(plan: Plan): void {
  const errors = plan.problems.filter((p) => p.severity === 'error');
  const first = errors[0];
  if (!first) return;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  throw new AmalgamError('PlanHasErrors', `${first.message}${more}`, first.remedy);
}

/** sha256 of every input: the Hub's own (verified at download), else computed here. */
async function hashInputs(
  plan: Plan,
  models: OpenModels,
  inputs: Inputs,
  meter: ProgressMeter,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  const unknown = plan.inputs.filter((input) => {
    const { sha256 } = models.file(input.folder, input.file).file;
    if (sha256 !== undefined) hashes.set(inputName(input.folder, input.file), sha256);
    return sha256 === undefined;
  });
  if (unknown.length > 0) {
    meter.begin(
      'hashing',
      unknown.reduce((sum, input) => sum + input.byteLength, 0),
      0,
    );
  }
  for (const input of unknown) {
    const name = inputName(input.folder, input.file);
    hashes.set(name, await sha256Of(inputs.source(name), signal, (bytes) => meter.advance(bytes, name)));
  }
  return hashes;
}

interface ShardWork {
  plan: Plan;
  shardPlans: readonly ShardPlan[];
  request: MergeRequest;
  engine: ComputeEngine;
  destination: Destination;
  inputs: Inputs;
  meter: ProgressMeter;
  signal: AbortSignal;
}

async function mergeShards(work: ShardWork) {
  const { plan, shardPlans, request, engine, destination, inputs, meter, signal } = work;
  meter.begin('merging', dataBytes(shardPlans), plan.tensors.length);
  return runPlan<WrittenShard>({
    plan,
    shards: shardPlans,
    engine,
    methods: methodById,
    read: inputs.read,
    signal,
    ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
    openShard: async (shard) => {
      const writer = await ShardWriter.open(destination, shard);
      return {
        async append(bytes) {
          const started = performance.now();
          await writer.append(bytes);
          meter.spend('write', (performance.now() - started) / 1000);
        },
        finish: () => writer.finish(),
        abort: () => writer.abort(),
      };
    },
    onWait: (seconds) => meter.spend('read', seconds),
    onTensor: (report) => meter.finishTensor(report),
    onBytes: (bytes, tensor) => meter.advance(bytes, tensor),
  });
}

/** Config, tokenizer, card and recipe. */
async function writeSmallFiles(
  plan: Plan,
  models: OpenModels,
  destination: Destination,
  signal: AbortSignal,
): Promise<void> {
  for (const { path, content } of plan.extras) {
    if ('text' in content) {
      await writeFile(destination, path, new TextEncoder().encode(content.text));
      continue;
    }
    const { folder, file } = models.file(content.folder, content.file);
    const source = await openCached(folder, file, { signal });
    try {
      await writeFile(destination, path, await source.read(0, source.byteLength, signal));
    } finally {
      source.close();
    }
  }
}

/** The index of several shards comes last: without it the folder does not load. */
async function writeIndex(destination: Destination, shards: readonly ShardPlan[]): Promise<void> {
  const entries = shards.flatMap((s) => s.tensors.map((t) => [t.name, s.file] as const));
  const text = buildShardIndex(entries, dataBytes(shards));
  await writeFile(destination, SHARD_INDEX, new TextEncoder().encode(text));
}

/** Bytes of tensor data, without the headers. */
function dataBytes(shards: readonly ShardPlan[]): number {
  return shards.reduce((sum, s) => sum + s.byteLength - s.header.byteLength, 0);
}

async function writeFile(
  destination: Destination,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const sink = await destination.create(path);
  await sink.write(bytes);
  await sink.close();
}

async function textSha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, '0')).join('');
}
