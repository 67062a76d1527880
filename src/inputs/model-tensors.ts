/** A model as a recipe names it: a checkpoint, with its adapter where it has one, tensor by tensor. */

import { isWeightDtype } from '../formats/dtype';
import { fullPrecisionName } from '../formats/hub-id';
import type { ModelConfig } from '../formats/model-config';
import { counted } from '../formats/quantity';
import { parseModelRef } from '../formats/recipe';
import { configFaults } from '../models/claim';
import { type Family, tensorKey } from '../models/families';
import { isBuffer } from '../models/tensor-role';
import type { PlanProblem } from '../reports/plan';
import type { Adapter } from './adapter';
import { applyAdapter } from './adapter-views';
import { type Checkpoint, endsOf, saysTied } from './checkpoint';
import { castTensor, type Dequantized, unreadQuantization } from './dequantization';
import type { Model, ModelTensor } from './model';
import { nameSome, type Problems } from './problems';
import type { TensorRef } from './tensor-view';

/**
 * The tensors of a checkpoint with an adapter applied to them. Nothing is read: the views describe how the values come
 * about. What does not fit goes to `problems`.
 *
 * @param isNotTaken whether a tensor is left out of the merge and not this model's to give: it need not be there, nor fit
 * @param isCast whether what is stored in no dtype of weights, though it is one (see `castTensor`), is read as f32: else it can only be copied
 */
export function modelTensors(
  ref: string,
  checkpoint: Checkpoint,
  adapter: Adapter | undefined,
  problems: Problems,
  isNotTaken?: (name: string) => boolean,
  isCast = false,
): Model {
  const tensors = new Map<string, ModelTensor>();
  const read = checkpoint.dequantized;
  const { formats } = read;
  const stored = new Map(read.tensors);
  const quantized = unreadQuantization(checkpoint.config, read);
  if (checkpoint.storedTwice) {
    problems.warn(
      'StoredTwice',
      `${checkpoint.path} has weights twice: in model.safetensors, which transformers loads, and in the ${counted(checkpoint.weightFiles.length, 'file')} that its index names, which are taken here, as in mergekit.`,
      'Make sure that both are the same, or take one of them out of a copy of the folder.',
    );
  }
  const { tokenizerFault } = checkpoint;
  if (tokenizerFault) problems.warn('TokenizerUnread', tokenizerFault.message, tokenizerFault.hint);
  takeHeadAsEmbedding(checkpoint, stored, problems);
  for (const [name, origin] of stored) {
    const short = tensorKey(name, checkpoint.family);
    // Both spellings in one file would be two tensors; then each keeps its own name.
    const key = tensors.has(short) ? name : short;
    const cast = isCast && !isBuffer(name) ? castTensor(origin, checkpoint.tensors) : undefined;
    const dtype = cast ? 'F32' : origin.derived ? (origin.derived.dtype ?? 'BF16') : origin.dtype;
    tensors.set(key, { name, view: { origin: cast ?? origin }, shape: origin.shape, dtype });
  }
  const faults = configProblems(checkpoint, stored).flatMap((problem) =>
    isNotTaken ? withoutTensors(problem, isNotTaken) : [problem],
  );
  if (formats.size > 0 && read.unscaled.length > 0) faults.push(missingScales(checkpoint, read));
  const own = quantized === undefined ? faults : [quantizedWeights(checkpoint, quantized)];
  for (const problem of own) problems.add(problem);
  const isFaulty = own.some(({ severity }) => severity === 'error');
  const model: Model = {
    ref,
    checkpoint,
    ...(adapter ? { adapter } : {}),
    tensors,
    ...(formats.size > 0 && { dequantized: [...formats] }),
    // in a text encoder nothing is merged token by token
    ...(checkpoint.isImage ? {} : endsOf(checkpoint.family, tensors)),
    tied: isTied(checkpoint),
    ...(isFaulty && { isFaulty }),
  };
  if (adapter && !isFaulty) applyAdapter(model, adapter, problems);
  return model;
}

/** The ends of an encoder–decoder as T5, BART and what is made like them name them, with the embedding's copies on both sides. */
const SHARED_ENDS: Pick<Family, 'prefix' | 'embedding' | 'head'> & { embeddings?: RegExp } = {
  ...{ prefix: 'model.', embedding: 'model.shared.weight', head: 'lm_head.weight' },
  embeddings: /(?:^|\.)embed_tokens\.weight$/,
};

/**
 * A tied model may be stored with its head alone, which is the embedding then. Both stored and different are two (see
 * `endsDiffer`); that is reported here, where every use of a model passes.
 */
function takeHeadAsEmbedding(
  { config, family, path, endsDiffer }: Checkpoint,
  stored: Map<string, TensorRef>,
  problems: Problems,
): void {
  if (endsDiffer) {
    problems.warn(
      'EndsDiffer',
      `The config of ${path} ties its head to the embedding, but both are stored and differ. They are taken as two, as transformers 5 does, and what is written has both (tie_word_embeddings: false); versions before ignore the head.`,
      'Set tie_word_embeddings in the config of that model to what it was trained with, if you know better.',
    );
  }
  const ends: typeof SHARED_ENDS | undefined =
    family ?? (config?.raw.get('is_encoder_decoder') === true ? SHARED_ENDS : undefined);
  const head = ends && stored.get(ends.head);
  if (!head || !saysTied(config, family, stored)) return;
  const names = [...stored.keys()];
  if (
    names.some(
      (name) => ends.embeddings?.test(name) || tensorKey(name, family) === tensorKey(ends.embedding, family),
    )
  )
    return;
  stored.delete(ends.head);
  const bare = !names.some((name) => name.startsWith(ends.prefix));
  const name = bare ? tensorKey(ends.embedding, family) : ends.embedding;
  stored.set(name, head);
  problems.note(
    'HeadIsEmbedding',
    `${path} stores its head alone, to which its config ties the embedding: it is both, and is written as ${name}.`,
  );
}

function missingScales({ path }: Checkpoint, { unscaled, formats }: Dequantized): PlanProblem {
  return {
    severity: 'error',
    code: 'TensorMissing',
    message: `${path} stores weights as ${[...formats].join(' or ')} without a scale that fits them, beside others that have one: it is not known what they stand for.`,
    remedy: 'The copy is incomplete, or was changed. Get the model again.',
    tensors: [...unscaled],
  };
}

function quantizedWeights({ path, tensors }: Checkpoint, method: string): PlanProblem {
  const { path: name } = parseModelRef(path).model;
  const full = fullPrecisionName(name);
  if ([...tensors.values()].every(({ dtype }) => isWeightDtype(dtype) || dtype === 'F64')) {
    return {
      severity: 'error',
      code: 'Quantized',
      message: `The config.json of ${path} says that its weights are quantized (${method}), but they are stored as ${nameSome([...new Set([...tensors.values()].map(({ dtype }) => dtype))])}.`,
      remedy:
        'Where they are the full weights, dequantized or merged, take quantization_config out of that config.json: the output would be quantized when it is loaded.',
    };
  }
  return {
    severity: 'error',
    code: 'Quantized',
    message: `The weights of ${path} are quantized (${method}) and cannot be computed with.`,
    remedy: `Use the model in F32, F16 or BF16 that it was quantized from${name.endsWith(full) ? '' : `, by its name ${full}`}.`,
  };
}

/** As of adapters: under ZeRO-3 every process holds a part of each weight. `isSure`: by its config it has values */
function emptyWeights({ path, tensors: all }: Checkpoint, tensors: string[], isSure: boolean): PlanProblem {
  return {
    severity: isSure ? 'error' : 'warning',
    code: 'TensorsEmpty',
    message: `${path} has no values in ${tensors.length} of its ${counted(all.size, 'tensor')}: it was saved under DeepSpeed ZeRO-3 while the weights were spread over the processes.`,
    remedy:
      'Save it again with its weights gathered (stage3_gather_16bit_weights_on_model_save, or zero_to_fp32.py on the checkpoint).',
    tensors,
  };
}

/** A problem of the other tensors, if any. */
function withoutTensors(problem: PlanProblem, isNotTaken: (name: string) => boolean): PlanProblem[] {
  const { tensors } = problem;
  if (!tensors) return [problem];
  const left = tensors.filter((tensor) => !isNotTaken(tensor.replace(/: \[.*$/, '')));
  return left.length === 0 ? [] : [{ ...problem, tensors: left }];
}

/** The config of a model that stores two ends, though it says that they are one. */
function asTaken({ config, endsDiffer }: Checkpoint): ModelConfig | undefined {
  if (!config || !endsDiffer) return config;
  return { ...config, raw: new Map(config.raw).set('tie_word_embeddings', false) };
}

/** Problems of a checkpoint in itself, found once. */
const found = new WeakMap<Checkpoint, PlanProblem[]>();

/** Where config.json and weights contradict each other: an error where it is sure that the output would not be the model. */
function configProblems(
  checkpoint: Checkpoint,
  stored: ReadonlyMap<string, { shape: readonly number[] }>,
): PlanProblem[] {
  const { path } = checkpoint;
  const config = asTaken(checkpoint);
  if (!config) return [];
  const known = found.get(checkpoint);
  if (known) return known;
  const { missing, headless, misshapen, unused, layers, invalid, unsure } = configFaults(config, stored);
  const empty = [...stored].filter(([, { shape }]) => `${shape}` === '0').map(([name]) => name);
  const hasPlace = (tensor: string) => empty.some((name) => tensor.startsWith(`${name}: `));
  const say = (
    severity: PlanProblem['severity'],
    code: string,
    message: string,
    tensors?: string[],
  ): PlanProblem[] =>
    tensors?.length === 0
      ? []
      : [
          {
            severity: unsure ? 'warning' : severity,
            ...{ code, message },
            remedy:
              'The config.json and the weights do not belong together, or the copy is incomplete. Get both from one place.',
            ...(tensors ? { tensors } : {}),
          },
        ];
  const made = [
    ...(empty.length === 0 ? [] : [emptyWeights(checkpoint, empty, misshapen.some(hasPlace))]),
    ...(invalid === undefined ? [] : say('error', 'ConfigInvalid', invalid)),
    ...say('error', 'TensorMissing', `${path} lacks tensors that its config.json asks for.`, missing),
    ...say(
      'error',
      'ShapeMismatch',
      `Tensors of ${path} have other shapes than its config.json says.`,
      misshapen.filter((tensor) => !hasPlace(tensor)),
    ),
    ...say(
      'warning',
      'HeadMissing',
      headless.length === 1
        ? `${path} has no head, and its config.json neither ties one to the embedding nor names a class without: whoever loads it gets a random one.`
        : `${path} lacks parts of the head that its class has (${nameSome(config.architectures)}): whoever loads it gets random ones.`,
      headless,
    ),
    ...say(
      layers === undefined ? 'warning' : 'error',
      'TensorsUnused',
      layers === undefined
        ? `The config.json of ${path} has no place for tensors that it stores: whoever loads it leaves them out.`
        : `The config.json of ${path} counts ${counted(layers[0], 'layer')}, and its weights have ${layers[1]}: whoever loads it leaves the others out.`,
      unused,
    ),
  ];
  found.set(checkpoint, made);
  return made;
}

/**
 * Whether head and embedding are one tensor: by the config, unless both are stored and differ.
 */
function isTied({ config, family, tensors, endsDiffer }: Checkpoint): boolean {
  return saysTied(config, family, tensors) && !endsDiffer;
}

/** Rows of a model's embedding, one per token; undefined where it is not known which tensor that is. */
export function embeddingRows({ embedding, tensors }: Model): number | undefined {
  return embedding === undefined ? undefined : tensors.get(embedding)?.shape[0];
}

/** The same of the checkpoint alone, before an adapter or another vocabulary: what its config is written for. */
export function storedEmbeddingRows({ embedding, tensors, checkpoint }: Model): number | undefined {
  const name = embedding === undefined ? undefined : tensors.get(embedding)?.name;
  return name === undefined ? undefined : checkpoint.tensors.get(name)?.shape[0];
}
