/**
 * Perplexity of several models and merges side by side. All go through the same layer before any goes on to the next,
 * so what is read of a file for one is there for the others; nothing is written. On the processor each core has models
 * of its own.
 */
import { type CountedBackend, countedBackend } from '../backend/counted-backend';
import { AmalgamError, errorFacts } from '../errors';
import type { ModelConfig } from '../formats/model-config';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type ReadingClock, readingClock } from '../host/reading-clock';
import { type SharedSources, shareSources } from '../host/shared-source';
import { type Inputs, openInputs } from '../host/weight-inputs';
import { inputName } from '../inputs/input-name';
import type { Plan } from '../merge/plan/plan';
import type { Prepared } from '../merge/tensor/prepared';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolve';
import type {
  EvaluatedModel,
  EvaluateManyReport,
  EvaluateManyRequest,
  RunningProgress,
  RunTarget,
} from '../reports/evaluate';
import { bytesToDownload } from '../store/cached-source';
import { tokenize } from './job';
import {
  checkInput,
  DEFAULT_PROTOCOL,
  type EvaluateInput,
  type EvaluateProtocol,
  type Evaluation,
  startEvaluation,
} from './perplexity';
import { downloadMeter, openModelOn, plannedConfig, type RunningModel } from './running-model';

/** Bytes of one layer's inputs, of all models together, that are kept for those who come later. */
const KEEP_BYTES = 1 << 30;
/** Bytes of activations on the device, of all models that go side by side. */
const ACTIVATION_BYTES = 1 << 30;
/** Activations of one model at work; streams, which all keep, come on top. */
const CHUNK_BYTES = 64 << 20;
/** More side by side gain little and hold up the first result. */
const MOST_TOGETHER = 32;

export interface EvaluateManyOptions {
  /** The clean plan of a target, and whether it is a model as it is (`exact`: see `openPlannedWeights`). */
  plan(target: RunTarget): Promise<{ plan: Plan; exact: boolean; prepared?: Prepared }>;
  models: OpenModels;
  signal: AbortSignal;
  onProgress(progress: RunningProgress): void;
}

/** One target on its way. */
interface Entry {
  index: number;
  plan: Plan;
  exact: boolean;
  prepared?: Prepared;
  config: ModelConfig;
  architecture: Architecture;
}

/**
 * Evaluates every target on every text. A target that cannot be run, or a text it cannot score, is an error in its
 * place; the others go on.
 * @throws AmalgamError `NoWebGpu`, `Cancelled`, `Usage`
 */
export async function runEvaluations(
  request: EvaluateManyRequest,
  options: EvaluateManyOptions,
): Promise<EvaluateManyReport> {
  const { targets, inputs, window = DEFAULT_PROTOCOL.window, stride = DEFAULT_PROTOCOL.stride } = request;
  if (targets.length === 0 || inputs.length === 0) {
    throw new AmalgamError('Usage', 'There is nothing to measure.', 'Name a model and a text at least.');
  }
  const begun = performance.now();
  const models = targets.map((): EvaluatedModel => ({ outcomes: [], bytes: null }));
  const fail = (index: number, thrown: unknown) => {
    if (options.signal.aborted) throw thrown;
    models[index]!.outcomes = inputs.map((_, i) => {
      const known = models[index]!.outcomes[i];
      return known && 'error' in known ? known : { error: errorFacts(thrown) };
    });
  };
  const entries: Entry[] = [];
  for (const [index, target] of targets.entries()) {
    try {
      const { plan, exact, prepared } = await options.plan(target);
      const config = await plannedConfig(plan, options.models, options.signal);
      const architecture = resolveArchitecture(config);
      models[index]!.bytes = plan.bytesToWrite;
      entries.push({ index, plan, exact, config, architecture, ...(prepared ? { prepared } : {}) });
    } catch (thrown) {
      fail(index, thrown);
    }
  }
  const work = entries.reduce((sum, { plan }) => sum + weightsOf(plan), 0) * mostTokens(inputs);
  const opened = await openEvaluationBackends(request.engine, entries.length, work);
  const engines = opened.map(countedBackend);
  const batches = cutBatches(entries, inputs);
  let bytesRead = 0;
  try {
    for (const [b, batch] of batches.entries()) {
      const shared = shareSources(KEEP_BYTES);
      const part = { before: b / batches.length, share: 1 / batches.length };
      await runBatch({
        batch,
        engines,
        shared,
        request,
        protocol: { window, stride },
        part,
        options,
        models,
        fail,
      });
      bytesRead += shared.bytesRead;
    }
    const seconds = (performance.now() - begun) / 1000;
    const peakBytes = engines.reduce((sum, engine) => sum + engine.peakBytes, 0);
    return { models, bytesRead, peakBytes, batches: batches.length, seconds };
  } finally {
    for (const engine of engines) engine.close();
  }
}

interface Batch {
  batch: readonly Entry[];
  /** Models are dealt out among them. */
  engines: readonly CountedBackend[];
  shared: SharedSources;
  request: EvaluateManyRequest;
  protocol: EvaluateProtocol;
  /** Which part of the whole this batch is, in [0, 1]. */
  part: { before: number; share: number };
  options: EvaluateManyOptions;
  models: EvaluatedModel[];
  fail(index: number, thrown: unknown): void;
}

interface Started {
  entry: Entry;
  model: RunningModel;
  evaluation: Evaluation;
  /** Indices of the texts that it scores. */
  texts: number[];
  /** Its own seconds, reading not counted. */
  seconds: number;
  reading: ReadingClock;
}

async function runBatch(work: Batch): Promise<void> {
  const { batch, engines, shared, options, models, fail } = work;
  const started: Started[] = [];
  let files: Inputs | undefined;
  const begun = performance.now();
  try {
    const union = new Map(
      batch.flatMap(({ plan }) => plan.inputs.map((i) => [inputName(i.folder, i.file), i] as const)),
    );
    const inputs = [...union.values()];
    const missing = await Promise.all(
      inputs.map((i) => bytesToDownload(options.models.file(i.folder, i.file).file)),
    );
    const download = missing.reduce((sum, bytes) => sum + bytes, 0);
    const meter = downloadMeter(download, options.onProgress);
    files = await openInputs({ inputs }, options.models, options.signal, meter, shared.share);
    const encoded = new Map<string, EvaluateInput[]>();
    for (const [number, entry] of batch.entries()) {
      try {
        const engine = engines[number % engines.length]!;
        const one = await start(entry, engine, files, work, encoded);
        if (one) started.push(one);
      } catch (thrown) {
        fail(entry.index, thrown);
      }
    }
    const stepOf = async (one: Started): Promise<boolean> => {
      const begin = performance.now() - 1000 * one.reading.seconds;
      try {
        const goesOn = await one.evaluation.step();
        // what is under way belongs to this model's time, and its buffers are free before the next one's are taken
        await one.model.engine.read([]);
        one.model.rest();
        return goesOn;
      } catch (thrown) {
        fail(one.entry.index, thrown);
        return false;
      } finally {
        one.seconds += (performance.now() - begin) / 1000 - one.reading.seconds;
        tell(started, work, begun);
      }
    };
    for (let open = [...started]; open.length > 0; ) {
      const going = new Set<Started>();
      const layer = engines.map(async (engine) => {
        for (const one of open) if (one.model.engine === engine && (await stepOf(one))) going.add(one);
      });
      const failed = (await Promise.allSettled(layer)).find((outcome) => outcome.status === 'rejected');
      if (failed) throw failed.reason;
      shared.forget();
      open = open.filter((one) => going.has(one));
    }
    for (const one of started) {
      const { index } = one.entry;
      if (models[index]!.outcomes.length > 0 && one.texts.every((t) => models[index]!.outcomes[t])) continue;
      const seconds = one.seconds + shared.seconds / started.length;
      const reports = one.evaluation.reports();
      const scored = reports.reduce((sum, r) => sum + r.tokens, 0);
      for (const [i, report] of reports.entries()) {
        const own = { ...report, seconds: (seconds * report.tokens) / scored };
        models[index]!.outcomes[one.texts[i]!] = { report: own };
      }
    }
    tell(
      started,
      work,
      begun,
      batch.map(({ index }) => ({ index, model: models[index]! })),
    );
  } finally {
    for (const { evaluation, model } of started) {
      evaluation.close();
      model.close();
    }
    files?.close();
  }
}

async function start(
  entry: Entry,
  engine: CountedBackend,
  files: Inputs,
  { batch, engines, request, protocol, options, models }: Batch,
  encoded: Map<string, EvaluateInput[]>,
): Promise<Started | undefined> {
  const { index, plan, exact, prepared, config, architecture } = entry;
  const reading = readingClock(files.read);
  const model = await openModelOn(engine, {
    plan,
    models: options.models,
    exact,
    ...(prepared ? { prepared } : {}),
    signal: options.signal,
    config,
    architecture,
    read: reading.read,
    inStep: true,
    runner: {
      activationBytes: CHUNK_BYTES / engines.length,
      streamBytes: Math.floor((256 << 20) / batch.length),
    },
  });
  try {
    const key = tokenizerKey(plan, architecture);
    const inputs = encoded.get(key) ?? (await encode(request.inputs, model));
    encoded.set(key, inputs);
    const texts: number[] = [];
    for (const [t, input] of inputs.entries()) {
      try {
        checkInput(model.runner, input, protocol);
        texts.push(t);
      } catch (thrown) {
        models[index]!.outcomes[t] = { error: errorFacts(thrown) };
      }
    }
    if (texts.length > 0) {
      const chosen = texts.map((t) => inputs[t]!);
      const evaluation = startEvaluation(model.runner, chosen, protocol, options.signal);
      model.rest();
      return { entry, model, evaluation, texts, seconds: 0, reading };
    }
  } catch (thrown) {
    model.close();
    throw thrown;
  }
  model.close();
  return undefined;
}

async function encode(inputs: EvaluateManyRequest['inputs'], model: RunningModel): Promise<EvaluateInput[]> {
  const tokenizer = inputs.some((input) => 'text' in input) ? await model.tokenizer() : undefined;
  const encoded: EvaluateInput[] = [];
  for (const input of inputs) {
    encoded.push('ids' in input ? { ids: input.ids, bos: null } : await tokenize(input.text, tokenizer!));
  }
  return encoded;
}

/** Plans whose tokenizer comes from the same files share what it made of the texts. */
function tokenizerKey({ extras }: Plan, { vocab }: Architecture): string {
  const files = extras.filter(({ path }) => /^tokenizer(_config)?\.json$/.test(path));
  return JSON.stringify([vocab, files.map(({ path, content }) => [path, content])]);
}

/** A character is one token at most. */
function mostTokens(inputs: EvaluateManyRequest['inputs']): number {
  return inputs.reduce((sum, input) => sum + ('ids' in input ? input.ids.length : input.text.length), 0);
}

function weightsOf({ tensors }: Plan): number {
  return tensors.reduce((sum, { elements }) => sum + elements, 0);
}

/** As many side by side as their activations fit: the fewest batches, all about the same. */
function cutBatches(entries: readonly Entry[], inputs: EvaluateManyRequest['inputs']): Entry[][] {
  if (entries.length === 0) return [];
  const hidden = Math.max(...entries.map(({ architecture }) => architecture.hidden));
  // windows overlap by half by default
  const streams = Math.min(2 * mostTokens(inputs) * hidden * 4, 256 << 20);
  const together = Math.max(
    1,
    Math.min(MOST_TOGETHER, Math.floor(ACTIVATION_BYTES / (streams + CHUNK_BYTES))),
  );
  const count = Math.ceil(entries.length / together);
  const size = Math.ceil(entries.length / count);
  return Array.from({ length: count }, (_, i) => entries.slice(i * size, (i + 1) * size));
}

function tell(
  started: readonly Started[],
  { part, options }: Batch,
  begun: number,
  finished?: RunningProgress['finished'],
): void {
  const all = started.map(({ evaluation }) => evaluation.progress);
  const done = all.reduce((sum, p) => sum + p.tokensDone, 0);
  const total = all.reduce((sum, p) => sum + p.tokens, 0);
  const seconds = (performance.now() - begun) / 1000;
  const rate = seconds > 0 ? done / seconds : 0;
  // batches are of about the same size
  const whole = total / part.share;
  const doneOfWhole = part.before * whole + done;
  const secondsLeft = rate > 0 ? (whole - doneOfWhole) / rate : null;
  options.onProgress({
    stage: 'running',
    done: doneOfWhole,
    total: whole,
    rate,
    secondsLeft,
    ...(finished ? { finished } : {}),
  });
}
