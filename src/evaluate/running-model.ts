/** A model made ready to run: its plan, its weights as they are read, its tokenizer. */

import { type CountedBackend, countedBackend } from '../backend/backend';
import { AmalgamError } from '../errors';
import { type GuardedTokenizer, guardedTokenizer, renderGuarded } from '../foreign/foreign-text';
import { checkVocabulary, tokenizerConfig } from '../foreign/tokenizer';
import { type ChatTemplate, chatTemplateOf } from '../formats/chat-template';
import type { Message } from '../formats/conversations';
import { DTYPE_BITS, isWeightDtype, weightBytes } from '../formats/dtype';
import { decodeToF32 } from '../formats/half';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { counted } from '../formats/quantity';
import { MAX_JSON_LENGTH } from '../formats/strict-json';
import { openJoinedRunner } from '../forward/joined-runner';
import { adaptableWeights } from '../forward/model';
import type { Runner, RunnerOptions } from '../forward/runner';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type Inputs, openInputs } from '../host/weight-inputs';
import type { ReadTensor } from '../inputs/stored-tensor';
import type { Plan } from '../merge/plan/plan';
import type { Prepared } from '../merge/tensor/prepared';
import type { Architecture } from '../models/architecture';
import { claimTensors } from '../models/claim';
import { resolveArchitecture } from '../models/resolution';
import type { BackendChoice } from '../reports/backend';
import type { RunningProgress } from '../reports/evaluate';
import { openCached } from '../store/cached-source';
import { endTokens } from './generation';
import { openLiveWeights } from './live-weights';
import { castPlans, type KeptApart, openPlannedWeights } from './planned-weights';

export interface RunningModel {
  runner: Runner;
  /** Count everything on the device: weights, activations, and the memory of merging. */
  engines: readonly CountedBackend[];
  /** Ids that end a text. */
  ends: readonly number[];
  /** @throws AmalgamError `TokenizerUnsupported`, `TokenizerInvalid`, `VocabularyMismatch` */
  tokenizer(): Promise<GuardedTokenizer>;
  /** Undefined where the model has no chat template. @throws AmalgamError `TokenizerInvalid`, `LimitExceeded` */
  chatTemplate(): Promise<ChatTemplate | undefined>;
  /**
   * Of a live model: takes another recipe of the same inputs and outputs, between two passes. It is of no use where this fails.
   * @throws what merging throws
   */
  become?(ready: Pick<ModelToOpen, 'plan' | 'prepared'>, signal?: AbortSignal): Promise<void>;
  /** The values of a tensor, merged where it is of a merge, and its shape; undefined where there is none. */
  tensor(name: string): Promise<{ values: Float32Array; shape: readonly number[] } | undefined>;
  /** Gives back the device memory that merging takes, until the next layer is read. */
  rest(): void;
  close(): void;
}

export interface RunningOptions {
  plan: Plan;
  models: OpenModels;
  engine: BackendChoice;
  /** Reads f32 where a stored model meets its adapter: see {@link openPlannedWeights}. */
  exact: boolean;
  /** Results of calibration, for methods that merge by them. */
  prepared?: Prepared;
  /** The recipe may change while the model is open. */
  live?: boolean;
  runner?: RunnerOptions;
  /** A model that fills in masked tokens is welcome. */
  masked?: boolean;
  /** Tokens of sequences that it is going to run side by side, at most; with enough of them it goes on every core. */
  tokens?: number;
  signal: AbortSignal;
  onProgress(progress: RunningProgress): void;
}

/**
 * Opens engines, weights and runner for a clean plan.
 * @throws AmalgamError `NoWebGpu`, `ArchitectureUnsupported`, `TensorMissing`, and what sources and store throw
 */
export async function openRunningModel(options: RunningOptions): Promise<RunningModel> {
  const { plan, models, signal, tokens = 0 } = options;
  const opened = await openEvaluationBackends(options.engine, enginesFor(plan), multiplyAdds(plan, tokens));
  const engines = opened.map(countedBackend);
  let inputs: Inputs | undefined;
  const close = () => {
    inputs?.close();
    for (const engine of engines) engine.close();
  };
  try {
    const config = await plannedConfig(plan, models, signal);
    const architecture = resolveArchitecture(config, { masked: options.masked === true });
    inputs = await openInputs(plan, models, signal, downloadMeter(plan.bytesToDownload, options.onProgress));
    const inStep = !roomAhead(plan, engines.length);
    const model = await openModelOn(engines, { ...options, config, architecture, read: inputs.read, inStep });
    return {
      ...model,
      close() {
        model.close();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** A planned model to be opened on an engine, over files that are open. */
export interface ModelToOpen {
  plan: Plan;
  models: OpenModels;
  exact: boolean;
  prepared?: Prepared;
  live?: boolean;
  signal: AbortSignal;
  config: ModelConfig;
  architecture: Architecture;
  read: ReadTensor;
  runner?: RunnerOptions;
  /** Read no layer ahead: others read the same files in step, or there is no room for it. */
  inStep?: boolean;
}

/** Weights and runner on engines that stay the caller's, as its files do. @throws as {@link openRunningModel} */
export async function openModelOn(
  engines: readonly CountedBackend[],
  model: ModelToOpen,
): Promise<RunningModel> {
  const { plan, models, signal, config, architecture } = model;
  const live = model.live
    ? await openLiveWeights(
        plan,
        engines,
        model.read,
        keptApart(plan, architecture, roomForLive(model.runner, engines[0]!)),
        model.exact,
        model.prepared,
      )
    : undefined;
  const weights = live ?? (await openPlannedWeights(plan, engines, model.read, model.exact, model.prepared));
  try {
    const source = model.inStep ? { ...weights, exclusive: true } : weights;
    const runner = openJoinedRunner(engines, architecture, source, model.runner);
    if (model.runner?.weights === '8-bit' && !runner.encoded) {
      throw new AmalgamError(
        'Usage',
        'Weights cannot be kept at 8 bits here.',
        'Keep them as they are stored, or take the engine webgpu.',
      );
    }
    const generation = await smallText(plan, models, 'generation_config.json', signal);
    const raw =
      generation === undefined ? undefined : parseModelConfig(generation, 'generation_config.json').raw;
    return {
      runner,
      engines,
      ends: endTokens(raw, config.raw),
      tokenizer: () => plannedTokenizer(plan, models, architecture.vocab, signal, model.live),
      chatTemplate: () => plannedChatTemplate(plan, models, signal),
      ...(live && {
        become: async (ready, stop) => runner.renew(await live.become(ready.plan, ready.prepared), stop),
      }),
      async tensor(name) {
        const stored = weights.tensors.get(name);
        if (!stored) return undefined;
        const { dtype, shape } = stored;
        const values = new Float32Array(shape.reduce((a, b) => a * b, 1));
        const bytes = await weights.read(name, 0, values.length * weightBytes(dtype), signal);
        decodeToF32(bytes, dtype, values);
        return { values, shape };
      },
      rest: () => weights.rest(),
      close() {
        runner.close();
        weights.close();
      },
    };
  } catch (error) {
    weights.close();
    throw error;
  }
}

/** What a live model keeps apart of the weights that it merges. @throws as {@link openModelOn} */
export function keptApart({ tensors }: Plan, architecture: Architecture, roomBytes: number): KeptApart {
  const weights = castPlans(tensors).filter(({ dtype }) => isWeightDtype(dtype));
  const claimed = claimTensors(architecture, new Map(weights.map((t) => [t.name, t])));
  const factored = adaptableWeights(architecture, claimed);
  return { factored, summed: new Set([...factored, claimed.get(architecture.final.head)!]), roomBytes };
}

/** Room for the weights of a live model in which changes stay apart: none at eight bits, which would round each by itself. */
export function roomForLive(
  { residentBytes = 0, weights }: RunnerOptions = {},
  engine: Pick<CountedBackend, 'residentBytes'>,
): number {
  const isKept = residentBytes > 0 && weights !== '8-bit';
  return isKept ? Math.max(residentBytes, engine.residentBytes ?? 0) : 0;
}

/**
 * The tokenizer of a planned model.
 * @param vocab rows of its embedding
 * @param stays as of `guardedTokenizer`
 * @throws AmalgamError `TokenizerUnsupported`, `TokenizerInvalid`, `VocabularyMismatch`
 */
export async function plannedTokenizer(
  plan: Plan,
  models: OpenModels,
  vocab: number,
  signal: AbortSignal,
  stays = false,
): Promise<GuardedTokenizer> {
  const read = (path: string) => smallText(plan, models, path, signal);
  const [tokenizer, config, model] = await Promise.all(
    ['tokenizer.json', 'tokenizer_config.json', 'config.json'].map(read),
  );
  const modelType = model === undefined ? undefined : parseModelConfig(model, 'config.json').modelType;
  const files = {
    ...(modelType === undefined ? {} : { modelType }),
    ...(tokenizer === undefined ? {} : { tokenizer }),
    ...(config === undefined ? {} : { config }),
    hasSentencePiece: plan.extras.some((e) => e.path === 'tokenizer.model'),
  };
  const made = await guardedTokenizer(files, plan.contributors[0] ?? 'the model', signal, undefined, stays);
  checkVocabulary(made, vocab);
  const encodeAll = async (texts: readonly string[]) => {
    const all = await made.encodeAll(texts);
    for (const ids of all) requireRows([...made.prefix, ...ids], vocab);
    return all;
  };
  return { ...made, encodeAll, encode: async (text) => (await encodeAll([text]))[0]! };
}

/** @throws AmalgamError `VocabularyMismatch` for a token without a row: an added one, or the tokenizer would be refused */
function requireRows(ids: readonly number[], vocab: number): void {
  const beyond = ids.find((id) => id >= vocab);
  if (beyond === undefined) return;
  throw new AmalgamError(
    'VocabularyMismatch',
    `A text has the added token ${beyond}, and the model's embedding has ${counted(vocab, 'row')}.`,
    'Take the token out of the text, or use the tokenizer of the model or of its base.',
  );
}

/** The chat template of a planned model; undefined where it has none. @throws AmalgamError `TokenizerInvalid` */
export async function plannedChatTemplate(
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
): Promise<ChatTemplate | undefined> {
  const read = (path: string) => smallText(plan, models, path, signal);
  const [config, file] = await Promise.all([read('tokenizer_config.json'), read('chat_template.jinja')]);
  return chatTemplateOf(config === undefined ? {} : tokenizerConfig(config), file);
}

/** @throws AmalgamError `ArchitectureUnsupported` for a model without config.json, `ConfigInvalid` */
export async function plannedConfig(
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
): Promise<ModelConfig> {
  const text = await smallText(plan, models, 'config.json', signal);
  if (text !== undefined) return parseModelConfig(text, 'config.json');
  if (plan.recipe.amalgam.output === 'adapter') {
    throw new AmalgamError(
      'ArchitectureUnsupported',
      'The recipe writes a LoRA, which runs on its base only.',
      'Name the base in front of its adapters (base+adapter).',
    );
  }
  if (plan.places) {
    throw new AmalgamError(
      'ArchitectureUnsupported',
      `${plan.contributors[0] ?? 'The model'} is a model of images, which writes no text: it cannot be run here.`,
      'It can be merged and compared. Look at what it draws in the program that it is for.',
    );
  }
  throw new AmalgamError(
    'ArchitectureUnsupported',
    `${plan.contributors[0] ?? 'The model'} has no config.json, so it is not known how to run it.`,
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
  const bytes = await plannedFile(plan, models, path, signal);
  return bytes && new TextDecoder().decode(bytes);
}

/** A small file of the plan, or undefined where the plan has none. @throws AmalgamError `LimitExceeded` */
export async function plannedFile(
  plan: Plan,
  models: OpenModels,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const content = plan.extras.find((e) => e.path === path)?.content;
  if (content === undefined) return undefined;
  if ('text' in content) return new TextEncoder().encode(content.text);
  const { folder, file } = models.file(content.folder, content.file);
  if (file.byteLength > 2 * MAX_JSON_LENGTH) {
    throw new AmalgamError(
      'LimitExceeded',
      `${path} is ${counted(file.byteLength, 'byte')} long; at most ${2 * MAX_JSON_LENGTH} are read.`,
      'No real model file comes near this limit: the file is damaged or malicious.',
    );
  }
  const source = await openCached(folder, file, { signal });
  try {
    return await source.read(0, source.byteLength, signal);
  } finally {
    source.close();
  }
}

/** Counts what is downloaded into progress messages. */
export function downloadMeter(
  total: number,
  onProgress: (progress: RunningProgress) => void,
): (bytes: number) => void {
  let done = 0;
  return (bytes) => {
    done += bytes;
    onProgress({ phase: 'downloading', done, total, rate: 0, secondsLeft: null });
  };
}

// A conversation rendered with the chat template that an output will have, before there is an output.

/** A message of each role, and one to be answered; without a system message, which not every template takes. */
const CONVERSATION: Message[] = [
  { role: 'user', content: 'What is a merge?' },
  { role: 'assistant', content: 'One model out of the weights of several.' },
  { role: 'user', content: 'Why?' },
];

/**
 * The conversation as the planned output will read it, up to where it answers; null where it has no chat template.
 * @param plan a clean one
 * @throws AmalgamError `TokenizerInvalid` for a template that does not render, and what reading the files throws
 */
export async function chatPreview(
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
): Promise<string | null> {
  const chat = await plannedChatTemplate(plan, models, signal);
  return chat ? (await renderGuarded(chat, [CONVERSATION], true, signal))[0]! : null;
}

// How many engines on the processor one model is worth: each holds the weights of the layer at work.

/** Bytes of layers that the engines of one model hold together; two layers in any case. */
const LAYER_BYTES = 1 << 30;

/** Most engines for a plan's model. */
export function enginesFor(plan: Plan): number {
  return Math.max(2, Math.floor(LAYER_BYTES / Math.max(1, largestLayer(plan))));
}

/** Whether each of so many engines may also hold the next layer. */
function roomAhead(plan: Plan, engines: number): boolean {
  return engines === 1 || 2 * engines * largestLayer(plan) <= LAYER_BYTES;
}

/** Multiply-adds of running so many tokens, attention left out. */
export function multiplyAdds({ tensors }: Plan, tokens: number): number {
  return tokens * tensors.reduce((sum, { elements }) => sum + elements, 0);
}

/** Most bytes that engines held, all together. */
export function peakOf(engines: readonly CountedBackend[]): number {
  return engines.reduce((sum, { peakBytes }) => sum + peakBytes, 0);
}

/** Stored bytes of the largest layer. */
export function largestLayer({ tensors }: Plan): number {
  const layers = new Map<number, number>();
  for (const { role, elements, dtype } of tensors) {
    if (role.layer === null) continue;
    layers.set(role.layer, (layers.get(role.layer) ?? 0) + (elements * DTYPE_BITS[dtype]) / 8);
  }
  return Math.max(0, ...layers.values());
}
