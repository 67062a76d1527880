/**
 * Several models and merges run side by side. All go through the same layer before any goes on to the next, so what is read
 * of a file for one is there for the others; nothing is written. On the processor each core has models of its own.
 */
import { type Backend, type CountedBackend, countedBackend } from '../backend/backend';
import { allEnded } from '../forward/queue';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type ReadingClock, readingClock, type SharedSources, shareSources } from '../host/shared-source';
import { type Inputs, missingBytes, openInputs } from '../host/weight-inputs';
import { inputName } from '../inputs/stored-tensor';
import type { Plan } from '../merge/plan/plan';
import type { Prepared } from '../merge/tensor/prepared';
import type { Architecture } from '../models/architecture';
import { resolveArchitecture } from '../models/resolution';
import type { BackendChoice } from '../reports/backend';
import type { EvaluateManyReport, KeptWeights, RunningProgress, RunTarget } from '../reports/evaluate';
import { runningAt } from '../reports/time-left';
import type { GroupedPasses } from './grouped-passes';
import {
  downloadMeter,
  enginesFor,
  type ModelToOpen,
  multiplyAdds,
  openModelOn,
  peakOf,
  plannedConfig,
  type RunningModel,
} from './running-model';

/** Bytes of one layer's inputs, of all models together, that are cached for the models that come later. */
const KEEP_BYTES = 1 << 30;
/** Bytes of activations on the device, of all models that go side by side. */
const ACTIVATION_BYTES = 1 << 30;
/** Activations of one running model; the streams of all models come on top. */
const CHUNK_BYTES = 64 << 20;
/** Streams of one model at most. */
const STREAM_BYTES = 256 << 20;
/** More side by side gain little and hold up the first result. */
const MOST_TOGETHER = 32;

export interface SideBySideOptions {
  /** The clean plan of a target, and whether it is a model as it is (`exact`: see `openPlannedWeights`). */
  plan(target: RunTarget): Promise<{ plan: Plan; exact: boolean; prepared?: Prepared }>;
  models: OpenModels;
  signal: AbortSignal;
  /** Engines that are open already, and stay so; default: opened for the work. */
  engines?: readonly Backend[];
}

/** A target whose plan is made. */
export interface Entry extends Pick<ModelToOpen, 'plan' | 'exact' | 'prepared' | 'config' | 'architecture'> {
  index: number;
}

/** Work on each model, as callbacks. */
interface SideBySideWork<W extends GroupedPasses> {
  targets: readonly RunTarget[];
  engine: BackendChoice;
  /** Models that fill in masked tokens are among what can be run. */
  masked?: boolean;
  /** What is run of a model: default all of it. */
  architecture?(whole: Architecture): Architecture;
  /** How weights are kept: at 8 bits by one engine, whose threads share them; else as they are stored. */
  weights?: KeptWeights;
  /** Tokens that each model runs, at most. */
  tokens: number;
  /** Sequences that each model runs, where it is known that they are few. */
  sequences?: number;
  planned?(entry: Entry): void;
  /** Begins with a model that is open; undefined where there is nothing to do. */
  begin(entry: Entry, model: RunningModel): Promise<W | undefined>;
  /** @param seconds its own, its share of reading included */
  end(entry: Entry, work: W, seconds: number): void;
  /** A model fails alone; the others go on. */
  fail(index: number, thrown: unknown): void;
  /** @param finished indices of the models that are finished */
  onProgress(progress: RunningProgress, finished: readonly number[]): void;
}

/** Runs every target's work to its end. @throws AmalgamError `NoWebGpu`, `Canceled` */
export async function runSideBySide<W extends GroupedPasses>(
  work: SideBySideWork<W>,
  options: SideBySideOptions,
): Promise<Omit<EvaluateManyReport, 'models'>> {
  const begun = performance.now();
  const fail = (index: number, thrown: unknown) => {
    if (options.signal.aborted) throw thrown;
    work.fail(index, thrown);
  };
  const entries: Entry[] = [];
  for (const [index, target] of work.targets.entries()) {
    try {
      const { plan, exact, prepared } = await options.plan(target);
      const config = await plannedConfig(plan, options.models, options.signal);
      const whole = resolveArchitecture(config, { masked: work.masked === true });
      const architecture = work.architecture?.(whole) ?? whole;
      const entry = { index, plan, exact, config, architecture, ...(prepared ? { prepared } : {}) };
      entries.push(entry);
      work.planned?.(entry);
    } catch (thrown) {
      fail(index, thrown);
    }
  }
  const amount = entries.reduce((sum, { plan }) => sum + multiplyAdds(plan, work.tokens), 0);
  const { sequences = Number.POSITIVE_INFINITY } = work;
  const isShared = work.weights === '8-bit';
  const most = isShared
    ? 1
    : entries.length * Math.min(sequences, ...entries.map(({ plan }) => enginesFor(plan)));
  const opened = options.engines?.slice(0, most) ?? (await openEvaluationBackends(work.engine, most, amount));
  const engines = opened.map(countedBackend);
  const batches = cutBatches(entries, work.tokens);
  let bytesRead = 0;
  try {
    for (const [b, batch] of batches.entries()) {
      const shared = shareSources(KEEP_BYTES);
      const part = { before: b / batches.length, share: 1 / batches.length };
      await runBatch({ batch, engines, shared, part, work, options, fail });
      bytesRead += shared.bytesRead;
    }
    const seconds = (performance.now() - begun) / 1000;
    return { bytesRead, peakBytes: peakOf(engines), batches: batches.length, seconds };
  } finally {
    if (!options.engines) for (const engine of engines) engine.close();
  }
}

interface Batch<W extends GroupedPasses> {
  batch: readonly Entry[];
  /** Models are dealt out among them, or they among fewer models. */
  engines: readonly CountedBackend[];
  shared: SharedSources;
  /** Share of the whole that this batch is, in [0, 1]. */
  part: { before: number; share: number };
  work: SideBySideWork<W>;
  options: SideBySideOptions;
  fail(index: number, thrown: unknown): void;
}

interface Started<W> {
  entry: Entry;
  model: RunningModel;
  own: W;
  failed: boolean;
  /** Its own seconds, reading not counted. */
  seconds: number;
  reading: ReadingClock;
}

async function runBatch<W extends GroupedPasses>(batch: Batch<W>): Promise<void> {
  const { engines, shared, options, work, fail } = batch;
  const started: Started<W>[] = [];
  let files: Inputs | undefined;
  const begun = performance.now();
  try {
    const union = new Map(
      batch.batch.flatMap(({ plan }) => plan.inputs.map((i) => [inputName(i.folder, i.file), i] as const)),
    );
    const inputs = [...union.values()];
    const download = await missingBytes(inputs, options.models);
    const meter = downloadMeter(download, (progress) => work.onProgress(progress, []));
    files = await openInputs({ inputs }, options.models, options.signal, meter, shared.share);
    const read = files.read;
    const opening = batch.batch.map((entry, number) => ({
      entry,
      own: dealt(engines, number, batch.batch.length),
    }));
    const begin = async ({ entry, own }: (typeof opening)[number]) => {
      try {
        const one = await start(entry, own, read, batch);
        if (one) started.push(one);
      } catch (thrown) {
        fail(entry.index, thrown);
      }
    };
    await onEngines(engines, opening, ({ own }) => own[0]!, begin);
    const stepOf = async (one: Started<W>): Promise<boolean> => {
      const begin = performance.now() - 1000 * one.reading.seconds;
      try {
        const goesOn = await one.own.step();
        // what is under way belongs to this model's time, and its buffers are free before the next one's are taken
        await Promise.all(one.model.engines.map((engine) => engine.read([])));
        one.model.rest();
        return goesOn;
      } catch (thrown) {
        fail(one.entry.index, thrown);
        one.failed = true;
        return false;
      } finally {
        one.seconds += (performance.now() - begin) / 1000 - one.reading.seconds;
        tell(started, batch, begun);
      }
    };
    for (let open = [...started]; open.length > 0; ) {
      const going = new Set<Started<W>>();
      const act = async (one: Started<W>) => {
        if (await stepOf(one)) going.add(one);
      };
      await onEngines(engines, open, ({ model }) => model.engines[0]!, act);
      shared.forget();
      open = open.filter((one) => going.has(one));
    }
    for (const one of started) {
      if (!one.failed) work.end(one.entry, one.own, one.seconds + shared.seconds / started.length);
    }
    tell(
      started,
      batch,
      begun,
      batch.batch.map(({ index }) => index),
    );
  } finally {
    for (const { own, model } of started) {
      own.close();
      model.close();
    }
    files?.close();
  }
}

/** Work on models, every engine going through its own one after the other. */
async function onEngines<T>(
  engines: readonly CountedBackend[],
  all: readonly T[],
  engineOf: (one: T) => CountedBackend,
  act: (one: T) => Promise<void>,
): Promise<void> {
  const working = engines.map(async (engine) => {
    for (const one of all) if (engineOf(one) === engine) await act(one);
  });
  await allEnded(working);
}

async function start<W extends GroupedPasses>(
  entry: Entry,
  own: readonly CountedBackend[],
  read: Inputs['read'],
  { batch, engines, options, work }: Batch<W>,
): Promise<Started<W> | undefined> {
  const { plan, exact, prepared, config, architecture } = entry;
  const reading = readingClock(read);
  const model = await openModelOn(own, {
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
      ...(work.weights === '8-bit' && { weights: work.weights }),
      activationBytes: (CHUNK_BYTES * own.length) / engines.length,
      streamBytes: Math.floor(STREAM_BYTES / batch.length),
    },
  });
  try {
    const begun = await work.begin(entry, model);
    if (begun) {
      model.rest();
      return { entry, model, own: begun, failed: false, seconds: 0, reading };
    }
  } catch (thrown) {
    model.close();
    throw thrown;
  }
  model.close();
  return undefined;
}

/** The engines of a model: one, or several where there are more engines than models. */
function dealt(engines: readonly CountedBackend[], number: number, models: number): CountedBackend[] {
  return engines.filter((_, e) => e === number % engines.length || e % models === number);
}

/** As many side by side as their activations fit: the fewest batches, all about the same. */
function cutBatches(entries: readonly Entry[], tokens: number): Entry[][] {
  if (entries.length === 0) return [];
  const hidden = Math.max(...entries.map(({ architecture }) => architecture.hidden));
  const streams = Math.min(tokens * hidden * 4, STREAM_BYTES);
  const together = Math.max(
    1,
    Math.min(MOST_TOGETHER, Math.floor(ACTIVATION_BYTES / (streams + CHUNK_BYTES))),
  );
  const count = Math.ceil(entries.length / together);
  const size = Math.ceil(entries.length / count);
  return Array.from({ length: count }, (_, i) => entries.slice(i * size, (i + 1) * size));
}

function tell<W extends GroupedPasses>(
  started: readonly Started<W>[],
  { part, work }: Batch<W>,
  begun: number,
  finished: readonly number[] = [],
): void {
  const all = started.map(({ own }) => own.progress);
  const done = all.reduce((sum, p) => sum + p.tokensDone, 0);
  const total = all.reduce((sum, p) => sum + p.tokens, 0);
  const seconds = (performance.now() - begun) / 1000;
  // batches are of about the same size
  const whole = total / part.share;
  work.onProgress(runningAt(part.before * whole + done, whole, seconds, done), finished);
}

/** Plans whose tokenizer and chat template come from the same files share what they made of the texts. */
export function tokenizerKey({ plan: { extras }, architecture: { vocab } }: Entry): string {
  const files = extras.filter(({ path }) => /^(tokenizer(_config)?\.json|chat_template\.jinja)$/.test(path));
  return JSON.stringify([vocab, files.map(({ path, content }) => [path, content])]);
}
