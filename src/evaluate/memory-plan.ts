/** Memory of a text before anything of its model is read: it is run on an engine that computes nothing. */
import { type EngineTraits, plannedBackend } from '../backend/planned-backend';
import { tensorBytes } from '../formats/safetensors-header';
import { sequenceBytes } from '../forward/kv-cache';
import { openRunner, type RunnerOptions } from '../forward/runner';
import type { WeightSource } from '../forward/weight-source';
import { engineTraits } from '../host/backends';
import type { OpenModels } from '../host/models';
import type { Plan } from '../merge/plan/plan';
import { peakBytes } from '../merge/plan/plan-bytes';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import type { MemoryReport, MemoryRequest, RunTarget } from '../reports/evaluate';
import { generate, WRITING_RESIDENT_BYTES, writingRunner } from './generation';
import {
  computedTensors,
  differenceBytes,
  livePlannedTensors,
  plannedTensors,
  storedTensors,
} from './planned-weights';
import { keptApart, plannedConfig, roomForLive } from './running-model';
import { factoredChange } from './weight-change';

type PlanTarget = (target: RunTarget) => Promise<{ plan: Plan; exact: boolean }>;

/**
 * The memory of the model that takes most.
 * @param plan the clean plan of a target
 * @param engine default: the one that would be opened
 * @throws AmalgamError `ArchitectureUnsupported`, `ContextTooLong`, `NoWebGpu`, and what planning and reading small files throw
 */
export async function planMemory(
  { targets, against, maxTokens, promptTokens, weights = 'auto', engine: choice }: MemoryRequest,
  plan: PlanTarget,
  models: OpenModels,
  engine?: EngineTraits,
): Promise<MemoryReport> {
  const traits = engine ?? (await engineTraits(choice));
  const { signal } = new AbortController();
  const open = async (target: RunTarget) => {
    const planned = await plan(target);
    const config = await plannedConfig(planned.plan, models, signal);
    return emptyModel(
      { ...planned, live: 'recipe' in target },
      resolveArchitecture(config, { masked: false }),
      roomForLive(writingRunner(weights), traits),
    );
  };
  const length = { prompt: promptTokens, maxTokens };
  const beside = against ? await measured(await open(against), traits, {}, length, 'read') : undefined;
  const reports: MemoryReport[] = [];
  for (const target of targets) {
    const model = await open(target);
    const options = writingRunner(weights);
    const { bytes, runner, tokens } = await measured(model, traits, options, length, 'write');
    const { factorBytes, differences, mergeBytes } = model;
    reports.push({
      bytes: bytes + factorBytes + mergeBytes + (beside?.bytes ?? 0),
      weightBytes: Math.max(0, runner.residentBytes - factorBytes - differences),
      differenceBytes: differences,
      roomBytes: Math.max(WRITING_RESIDENT_BYTES, traits.residentBytes ?? 0),
      factorBytes: 2 * factorBytes,
      cacheBytes: sequenceBytes(model.architecture, tokens).all,
      ...{ tokens, mergeBytes },
      passingBytes: runner.weightBytes - runner.residentBytes,
      ...(runner.encoded && { eightBits: true as const }),
    });
  }
  return reports.reduce((most, one) => (one.bytes > most.bytes ? one : most));
}

interface EmptyModel {
  architecture: Architecture;
  source: WeightSource;
  /** LoRA factors, once: they are on the device and beside it. */
  factorBytes: number;
  differences: number;
  mergeBytes: number;
}

/** A model all of whose weights are zero. */
function emptyModel(
  { plan, exact, live }: { plan: Plan; exact: boolean; live: boolean },
  architecture: Architecture,
  roomBytes: number,
): EmptyModel {
  const planned = live
    ? livePlannedTensors(plan, exact, keptApart(plan, architecture, roomBytes))
    : plannedTensors(plan, exact, exact ? factoredChange : () => undefined);
  // nobody writes to them: pieces of one length are the same one
  let piece = new Uint8Array(0);
  const zeros = async (_: unknown, begin: number, end: number) => {
    if (piece.length !== end - begin) piece = new Uint8Array(end - begin);
    return piece;
  };
  const stored = storedTensors(planned, () => Promise.reject());
  const computed = computedTensors(planned);
  const largest = Math.max(0, ...computed.map(({ dtype, shape }) => tensorBytes(dtype, shape) ?? 0));
  let factorBytes = 0;
  for (const [name, { rank }] of stored.updates) {
    const [rows, columns] = stored.tensors.get(name)!.shape as [number, number];
    factorBytes += 4 * rank * (rows + columns);
    const load = async () => ({
      left: new Float32Array(rows * rank),
      right: new Float32Array(rank * columns),
    });
    stored.updates.set(name, { rank, scale: 1, load });
  }
  const mergeBytes = computed.length > 0 ? peakBytes(computed) + largest : 0;
  // as the weights that it stands for, it reads ahead where nothing is computed
  const exclusive = live || computed.length > 0;
  const source = { ...stored, exclusive, read: zeros };
  return { architecture, source, factorBytes, differences: differenceBytes(planned), mergeBytes };
}

/** What a text takes on an engine: written behind a prompt, or read as a whole. */
async function measured(
  { architecture, source }: EmptyModel,
  traits: EngineTraits,
  options: RunnerOptions,
  { prompt, maxTokens }: { prompt: number; maxTokens: number },
  use: 'write' | 'read',
) {
  const backend = plannedBackend(traits);
  const runner = openRunner(backend.engine, architecture, source, options);
  const { maxPositions = Number.POSITIVE_INFINITY, vocab } = architecture;
  const tokens = Math.min(prompt + maxTokens, maxPositions);
  const idsOf = (count: number) => Array.from({ length: Math.max(1, count) }, (_, i) => i % vocab);
  if (use === 'read') {
    const pass = runner.startPass({ sequences: [{ ids: idsOf(tokens), from: 1 }], output: 'loss' });
    while (await pass.step());
    pass.close();
  } else {
    const sampling = { temperature: 0.7, topP: 0.9, seed: 0 };
    const ids = idsOf(Math.min(prompt, tokens - 1));
    await generate(runner, [ids], { maxTokens, sampling, enough: (written) => written >= 2 });
  }
  return { bytes: backend.bytes, runner, tokens };
}
