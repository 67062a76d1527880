/**
 * How recipes pick tensors by name. mergekit's filters are substrings (its `config.py`, evaluate_setting); no tensor
 * name holds `*` or `?`, so a filter with one of them would match nothing there and is free to be a glob here.
 */

/** Whether a filter is a glob, which mergekit would take literally and so never match. `*` alone is mergekit's own word for all. */
export function isGlob(pattern: string): boolean {
  return pattern !== '*' && /[*?]/.test(pattern);
}

/**
 * Whether a filter matches a tensor name: `*` means every tensor; a pattern with `*` (any characters, also none)
 * or `?` (one character) must match the whole name; anything else is found anywhere in the name. Time grows with the
 * product of the lengths at most.
 */
export function matchesTensor(pattern: string, name: string): boolean {
  return isGlob(pattern) ? matchGlob(pattern, name) : pattern === '*' || name.includes(pattern);
}

/** Glob match that backtracks to the last star only: no more is ever needed. */
function matchGlob(pattern: string, text: string): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resume;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Towers of multimodal models, as recipes name them and as tensor names distinguish them. */

/** A tower; `text` is whatever belongs to no other. */
export type Tower = 'projector' | 'audio' | 'vision' | 'encoder' | 'text';

/**
 * Parts of tensor names, of which a model has some, in the order in which they are looked for: LLaVA, Gemma 3 and 4, Mistral 3,
 * Qwen-VL, InternVL, SmolVLM, Idefics 3, Whisper and encoder–decoders.
 */
export const TOWERS: Readonly<Record<Exclude<Tower, 'text'>, readonly string[]>> = {
  projector: [
    ...['multi_modal_projector.', 'mm_projector.', 'vision_language_adapter.', 'connector.', 'mlp1.'],
    ...['embed_vision.', 'visual.merger', 'visual.deepstack_merger'],
  ],
  audio: ['audio_tower.', 'audio_encoder.', 'audio_model.', 'embed_audio.'],
  vision: ['vision_tower.', 'vision_model.', 'vision_encoder.', 'visual.'],
  encoder: ['encoder.'],
};

const WORDS: readonly (readonly [word: RegExp, tower: Tower])[] = [
  [/proj|connector|merger|adapter|mlp1/i, 'projector'],
  [/audio|speech/i, 'audio'],
  [/vision|visual|image/i, 'vision'],
  [/text|language|decoder|llm/i, 'text'],
  [/encoder/i, 'encoder'],
];

/** The tower that a module of a recipe is named after: `vision_tower`, `model.visual`, `text_decoder`. */
export function towerOf(module: string): Tower | undefined {
  return WORDS.find(([word]) => word.test(module))?.[1];
}

/** The filters that stand for the same tower as this one; the filter alone where it is no tower's. */
export function towerFilters(filter: string): readonly string[] {
  return Object.values(TOWERS).find((filters) => filters.includes(filter)) ?? [filter];
}
