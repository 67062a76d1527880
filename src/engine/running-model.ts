/** A model made ready to run: its plan, its weights as they are read, its tokenizer. */
import type { EngineChoice } from '../compute/engine';
import { AmalgamError } from '../errors';
import { endTokens } from '../evaluate/generate';
import { checkVocabulary, createTokenizer, type Tokenizer } from '../evaluate/tokenizer';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { openRunner, type Runner } from '../forward/runner';
import type { Plan } from '../merge/plan';
import { resolveArchitecture } from '../models/resolve';
import { openCached } from '../store/cached-source';
import { openEngine } from './choose-engine';
import { type Inputs, openInputs } from './inputs';
import type { OpenModels } from './models';
import { openPlannedWeights, type PlannedWeights } from './planned-weights';
import type { RunningProgress } from './protocol-run';

export interface RunningModel {
  runner: Runner;
  /** Ids that end a text. */
  ends: readonly number[];
  /** @throws AmalgamError `TokenizerUnsupported`, `TokenizerInvalid`, `VocabularyMismatch` */
  tokenizer(): Promise<Tokenizer>;
  close(): void;
}

export interface RunningOptions {
  plan: Plan;
  models: OpenModels;
  engine: EngineChoice;
  /** Keep f32 where a stored model meets its adapter: see {@link openPlannedWeights}. */
  exact: boolean;
  signal: AbortSignal;
  onProgress(progress: RunningProgress): void;
}

/**
 * Opens engine, weights and runner for a clean plan.
 * @throws AmalgamError `NoWebGpu`, `ArchitectureUnsupported`, `TensorMissing`, and what sources and store throw
 */
export async function openRunningModel(options: RunningOptions): Promise<RunningModel> {
  const { plan, models, signal } = options;
  const engine = await openEngine(options.engine);
  let inputs: Inputs | undefined;
  let weights: PlannedWeights | undefined;
  let runner: Runner | undefined;
  const close = () => {
    runner?.close();
    weights?.close();
    inputs?.close();
    engine.close();
  };
  try {
    const config = await plannedConfig(plan, models, signal);
    const architecture = resolveArchitecture(config);
    inputs = await openInputs(plan, models, signal, downloadMeter(plan.bytesToDownload, options.onProgress));
    weights = await openPlannedWeights(plan, engine, inputs.read, options.exact);
    runner = openRunner(engine, architecture, weights);
    const generation = await smallText(plan, models, 'generation_config.json', signal);
    const raw =
      generation === undefined ? undefined : parseModelConfig(generation, 'generation_config.json').raw;
    return {
      runner,
      ends: endTokens(raw, config.raw),
      tokenizer: () => plannedTokenizer(plan, models, architecture.vocab, signal),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * The tokenizer of a planned model.
 * @param vocab rows of its embedding
 * @throws AmalgamError `TokenizerUnsupported`, `TokenizerInvalid`, `VocabularyMismatch`
 */
export async function plannedTokenizer(
  plan: Plan,
  models: OpenModels,
  vocab: number,
  signal: AbortSignal,
): Promise<Tokenizer> {
  const read = (path: string) => smallText(plan, models, path, signal);
  const [tokenizer, config] = await Promise.all([read('tokenizer.json'), read('tokenizer_config.json')]);
  const files = {
    ...(tokenizer === undefined ? {} : { tokenizer }),
    ...(config === undefined ? {} : { config }),
    hasSentencePiece: plan.extras.some((e) => e.path === 'tokenizer.model'),
  };
  const made = createTokenizer(files, plan.contributors[0] ?? 'the model');
  checkVocabulary(made, vocab);
  return made;
}

async function plannedConfig(plan: Plan, models: OpenModels, signal: AbortSignal): Promise<ModelConfig> {
  const text = await smallText(plan, models, 'config.json', signal);
  if (text !== undefined) return parseModelConfig(text, 'config.json');
  throw new AmalgamError(
    'ArchitectureUnsupported',
    `${plan.contributors[0] ?? 'The model'} has no config.json, so nobody knows how to run it.`,
    'It can still be merged. To run it, add the config.json of its architecture.',
  );
}

/** A small file of the plan as text, or undefined where the plan has none. */
async function smallText(
  plan: Plan,
  models: OpenModels,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const content = plan.extras.find((e) => e.path === path)?.content;
  if (content === undefined) return undefined;
  if ('text' in content) return content.text;
  const { folder, file } = models.file(content.folder, content.file);
  const source = await openCached(folder, file, { signal });
  try {
    return new TextDecoder().decode(await source.read(0, source.byteLength, signal));
  } finally {
    source.close();
  }
}

function downloadMeter(
  total: number,
  onProgress: (progress: RunningProgress) => void,
): (bytes: number) => void {
  let done = 0;
  return (bytes) => {
    done += bytes;
    onProgress({ stage: 'downloading', done, total, rate: 0, secondsLeft: null });
  };
}
