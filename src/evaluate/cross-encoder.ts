/** Scores of pairs of texts as the cross-encoders of sentence-transformers 6 give them, up to their last, monotone function. */
import { ACTIVATIONS } from '../backend/special';
import { AmalgamError } from '../errors';
import type { GuardedTokenizer } from '../foreign/foreign-text';
import { type ConfigFields, numberField, stringField } from '../formats/json-fields';
import type { ModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import type { Architecture } from '../models/architecture';
import { type ScoreHead, scoreHead } from '../models/score-head';
import type { Pooled, Vector } from './embedder';
import type { RunningModel } from './running-model';

/** Ids of a pair, and the kind of text of each where the model tells them apart. */
export interface EncodedPair {
  ids: number[];
  types?: number[];
}

export interface CrossEncoder {
  /** How, in words. */
  words: string;
  encode(pairs: readonly (readonly [string, string])[]): Promise<EncodedPair[]>;
  /** Ends in the score of the pair, one number. */
  pooled(): Pooled;
}

/** The class of a model that was saved with a head of labels; undefined of any other. */
export function scoringClass({ architectures, modelType }: ModelConfig): string | undefined {
  const named = architectures.find((name) => name.endsWith('ForSequenceClassification'));
  return modelType !== undefined && scoreHead(modelType) ? named : undefined;
}

/**
 * @param most tokens of a pair
 * @throws AmalgamError `ArchitectureUnsupported` for a head of several labels or of another kind, `TensorMissing`,
 *   `TokenizerUnsupported` where it is not known how the tokenizer joins two texts
 */
export async function openCrossEncoder(
  config: ModelConfig,
  { modelType, hidden, embedding }: Pick<Architecture, 'modelType' | 'hidden' | 'embedding'>,
  tensor: RunningModel['tensor'],
  tokenizer: Pick<GuardedTokenizer, 'pair' | 'encodeAll'>,
  most: number,
): Promise<CrossEncoder> {
  const head = scoreHead(modelType)!;
  const { pair } = tokenizer;
  if (!pair) {
    throw new AmalgamError(
      'TokenizerUnsupported',
      'The post-processor in tokenizer.json does not say how it joins two texts.',
      'Use the tokenizer.json of the base model.',
    );
  }
  const fields: ConfigFields = { object: config.raw, fileName: config.fileName, code: 'ConfigInvalid' };
  const pooling = stringField(fields, 'classifier_pooling') ?? 'cls';
  const activation = stringField(fields, 'classifier_activation') ?? 'gelu';
  if (pooling !== 'cls' && pooling !== 'mean') throw unknown(`the pooling ${displayName(pooling, 40)}`);
  if (activation !== 'gelu') throw unknown(`the activation ${displayName(activation, 40)}`);
  const layers = await loadHead(head, tensor, numberField(fields, 'norm_eps') ?? 1e-5);
  const own = pair.reduce((sum, piece) => sum + ('ids' in piece ? piece.ids.length : 0), 0);
  const typed = head.types && (embedding.positions?.types?.rows ?? 1) > 1;
  return {
    words: `none; the head scores pairs, from the ${pooling === 'cls' ? 'first token' : 'mean of the tokens'}`,
    async encode(pairs) {
      const texts = [...new Set(pairs.flat().map((text) => text.trim()))];
      const encoded = await tokenizer.encodeAll(texts);
      const idsOf = new Map(texts.map((text, i) => [text, encoded[i]!]));
      return pairs.map((two) => {
        const parts = cutLongest(
          two.map((text) => idsOf.get(text.trim())!),
          most - own,
        );
        const pieces = pair.map((piece) => ({
          ids: 'ids' in piece ? piece.ids : parts[piece.text]!,
          type: piece.type,
        }));
        const ids = pieces.flatMap((piece) => piece.ids);
        return typed ? { ids, types: pieces.flatMap((piece) => piece.ids.map(() => piece.type)) } : { ids };
      });
    },
    pooled() {
      const sum = new Float64Array(hidden);
      let count = 0;
      return {
        add(row, position) {
          if (pooling === 'cls' && position > 0) return;
          count++;
          for (let c = 0; c < hidden; c++) sum[c]! += row[c]!;
        },
        end: () =>
          layers.reduce<Vector>(
            (x, layer) => layer(x),
            sum.map((value) => value / count),
          ),
      };
    },
  };
}

/** Two texts of `most` tokens together, the longer one cut (tokenizers, utils/truncation.rs: `LongestFirst`). */
function cutLongest([one, other]: readonly (readonly number[])[], most: number): (readonly number[])[] {
  const [a, b] = [one!.length, other!.length];
  if (a + b <= most) return [one!, other!];
  const short = Math.min(a, b);
  const half = Math.floor(most / 2);
  const lengths = short > half ? [half, most - half] : [short, most - short];
  const [first, second] = a > b ? lengths.toReversed() : lengths;
  return [one!.slice(0, first), other!.slice(0, second)];
}

async function loadHead(
  { layers }: ScoreHead,
  tensor: RunningModel['tensor'],
  epsilon: number,
): Promise<((x: Vector) => Vector)[]> {
  const read = async (name: string) => {
    const found = await tensor(name);
    if (found) return found;
    throw new AmalgamError(
      'TensorMissing',
      `The model has no tensor ${name}, by which it scores pairs.`,
      'Its config.json and its weights do not belong together, or the copy is incomplete. Get it again.',
    );
  };
  const loaded: ((x: Vector) => Vector)[] = [];
  let labels = 0;
  for (const { linear, activation, norm } of layers) {
    const { shape, values } = await read(`${linear}.weight`);
    const bias = (await tensor(`${linear}.bias`))?.values;
    labels = shape[0]!;
    loaded.push((x) =>
      Float64Array.from({ length: shape[0]! }, (_, o) => {
        const row = values.subarray(o * x.length, (o + 1) * x.length);
        return ACTIVATIONS[activation]!(x.reduce((sum, value, i) => sum + value * row[i]!, bias?.[o] ?? 0));
      }),
    );
    if (norm === undefined) continue;
    const { values: factors } = await read(`${norm}.weight`);
    const addends = (await tensor(`${norm}.bias`))?.values;
    loaded.push((x) => {
      const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
      const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
      const scale = 1 / Math.sqrt(variance + epsilon);
      return x.map((value, i) => (value - mean) * scale * factors[i]! + (addends?.[i] ?? 0));
    });
  }
  if (labels !== 1) throw unknown(`a head of ${labels} labels`);
  return loaded;
}

function unknown(what: string): AmalgamError {
  return new AmalgamError(
    'ArchitectureUnsupported',
    `The model classifies texts with ${what}; pairs are scored by heads of one label, from the first token or the mean.`,
    'It can still be merged. Measure the output with transformers.',
  );
}
