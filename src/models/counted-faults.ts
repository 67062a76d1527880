/**
 * How config.json and weights contradict each other in a model that is not run: by what configs of encoder–decoders, encoders and
 * types that nobody knows count, against names and shapes of what is stored.
 */
import type { ModelConfig } from '../formats/model-config';
import { isJsonNumber } from '../formats/strict-json';
import { whyNotRun } from './resolution';
import { splitLayer, tensorRole } from './tensor-role';

type Stored = ReadonlyMap<string, { shape: readonly number[] }>;

interface CountedFaults {
  missing: string[];
  headless: string[];
  misshapen: string[];
  unused: string[];
}

/** The stacks of encoder–decoders (T5, BART and what is made like them in transformers), and fields that count their layers. */
const SIDES: Readonly<Record<string, readonly string[]>> = {
  encoder: ['encoder_layers', 'num_encoder_layers'],
  decoder: ['decoder_layers', 'num_decoder_layers'],
};
const SIDE = /^(?:model\.|transformer\.)?(encoder|decoder)\.(?:block|layers?)\.$/;

const TOKENS = /(?:^|\.)(?:embed_tokens|embed_in|wte|word_embeddings|shared)\.weight$/;

export function countedFaults(config: ModelConfig, stored: Stored): CountedFaults {
  const { modelType = '', architectures, raw } = config;
  const count = (fields: readonly string[]) =>
    fields
      .map((field) => raw.get(field))
      .flatMap((value) => (isJsonNumber(value) ? [Number(value.text)] : []))[0];
  const faults: CountedFaults = { missing: [], headless: [], misshapen: [], unused: [] };
  const isPair = raw.get('is_encoder_decoder') === true;
  const isGenerating = isPair && architectures.some((name) => /ForConditionalGeneration$/.test(name));

  const stacks = new Map<string, Map<number, string[]>>();
  for (const name of stored.keys()) {
    const layer = splitLayer(name);
    if (!layer) continue;
    const layers = stacks.get(layer.stack) ?? new Map<number, string[]>();
    stacks.set(layer.stack, layers.set(layer.index, [...(layers.get(layer.index) ?? []), name]));
  }
  const most = Math.max(0, ...[...stacks.values()].flatMap((layers) => [...layers.keys()]));
  for (const [stack, layers] of stacks) {
    const side = isPair ? SIDE.exec(stack)?.[1] : undefined;
    const said = side === undefined ? config.layers : (count(SIDES[side]!) ?? config.layers);
    const depth = 1 + Math.max(...layers.keys());
    // other towers have counts of their own, and one layer alone may be shared by all
    if (said === undefined || (side === undefined && (depth <= most || depth === 1))) continue;
    const lost = Array.from({ length: said }, (_, i) => i).filter((index) => !layers.has(index));
    if (lost.length > 0 && (side !== undefined || lost[0] === depth)) {
      faults.missing.push(`${stack}${lost[0]}${lost.length > 1 ? ` to ${stack}${lost.at(-1)}` : ''}`);
    }
    if (side === undefined) continue;
    for (const [index, names] of layers) if (index >= said) faults.unused.push(...names);
  }
  const sides = new Set([...stacks.keys()].map((stack) => SIDE.exec(stack)?.[1]));
  if (isGenerating && sides.has('encoder') !== sides.has('decoder')) {
    faults.missing.push(sides.has('encoder') ? 'decoder' : 'encoder');
  }

  // sizes of types that transformers knows, whose loader takes no others
  const isKnown = whyNotRun(modelType) !== undefined && !raw.has('auto_map');
  if (!isKnown) return faults;
  const numbers = [...raw.values()].flatMap((value) => (isJsonNumber(value) ? [Number(value.text)] : []));
  const { vocabSize: rows, hiddenSize: width } = config;
  const vocabularies = [...raw.keys()].filter((key) => /vocab_size$/.test(key));
  for (const [name, { shape }] of stored) {
    if (!TOKENS.test(name) || splitLayer(name) || rows === undefined || width === undefined) continue;
    const isWide = numbers.includes(shape[1]!);
    if ((shape[0] === rows || vocabularies.length > 1) && isWide) continue;
    faults.misshapen.push(`${name}: [${shape}] instead of [${rows},${isWide ? shape[1] : width}]`);
  }
  const matrices = [...stored].filter(([name, { shape }]) => shape.length === 2 && splitLayer(name));
  for (const field of ['d_ff', 'intermediate_size', 'encoder_ffn_dim', 'decoder_ffn_dim']) {
    const inner = count([field]);
    if (inner === undefined || matrices.length === 0) continue;
    if (matrices.some(([, { shape }]) => shape.includes(inner) || shape.includes(2 * inner))) continue;
    faults.misshapen.push(`no layer has ${field} ${inner}`);
  }
  const isTied = raw.get('tie_word_embeddings') !== false;
  if (
    isGenerating &&
    !isTied &&
    ![...stored].some(([name, { shape }]) => tensorRole(name, shape).kind === 'head')
  ) {
    faults.headless.push('lm_head.weight');
  }
  return faults;
}
