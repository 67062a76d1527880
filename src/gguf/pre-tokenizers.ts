/**
 * How text is split ahead of byte-level BPE, and llama.cpp's name for it (v0.5.0, src/llama-vocab.cpp). A tokenizer is
 * known by its rules, not by a hash of its ids, so one with a vocabulary of its own is known too.
 */
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const WORDS = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const REST = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
const LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
const LEAD = '[^\\r\\n\\p{L}\\p{N}]?';
const SLASHED = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

/** Rules in order, each as {@link ruleOf} writes it → name. */
const NAMES: Readonly<Record<string, string>> = {
  gpt2: 'gpt-2',
  'digits gpt2': 'starcoder',
  [`split ${CONTRACTIONS}|${WORDS}|\\p{N}{1,3}|${REST}`]: 'llama-bpe',
  [`split ${CONTRACTIONS}|${WORDS}|\\p{N}|${REST}`]: 'qwen2',
  [`split ${LEAD}${UPPER}*${LOWER}+|${LEAD}${UPPER}+${LOWER}*|\\p{N}|${SLASHED}`]: 'tekken',
  [`split ${LEAD}${UPPER}*${LOWER}+${CONTRACTIONS}?|${LEAD}${UPPER}+${LOWER}*${CONTRACTIONS}?|\\p{N}{1,3}|${SLASHED}`]:
    'gpt-4o',
  'split  ?[^(\\s|[.,!?…。，、।۔،])]+': 'bloom',
};

/** Other names that llama.cpp has for the same rules. */
const ALIASES: Readonly<Record<string, string>> = {
  ...{ llama3: 'llama-bpe', 'llama-v3': 'llama-bpe', falcon3: 'llama-bpe', 'falcon-h1': 'llama-bpe' },
  ...{ pixtral: 'llama-bpe', 'midm-2.0': 'llama-bpe', lfm2: 'llama-bpe' },
  ...{ dbrx: 'llama-bpe', 'smaug-bpe': 'llama-bpe', 'phi-2': 'gpt-2', exaone4: 'gpt-2', olmo: 'gpt-2' },
  ...{ jais: 'gpt-2', trillion: 'gpt-2', gigachat: 'gpt-2', 'a.x-4.0': 'gpt-2', mellum: 'gpt-2' },
  ...{ mpt: 'gpt-2', refact: 'starcoder', 'command-r': 'starcoder', smollm: 'starcoder' },
  ...{ codeshell: 'starcoder', exaone: 'starcoder', 'minerva-7b': 'starcoder' },
  ...{ 'deepseek-r1-qwen': 'qwen2', kormo: 'qwen2', megrez: 'qwen2', stablelm2: 'qwen2' },
  llama4: 'gpt-4o',
};

/** Those under which a word that is a token is not put together from merges, and those with a token in front of every text. */
const WHOLE_WORDS = /^(?:llama3|llama-v3|llama-bpe|falcon3|falcon-h1|pixtral|midm-2\.0|lfm2|tekken)$/;

/** Bytes as letters, in a tokenizer.json. */
export const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };

/** How a tokenizer.json says what llama.cpp does by a name; undefined for a name that is not known. */
export function preTokenizerBy(
  name: string,
): { preTokenizer: Record<string, unknown>; ignoreMerges: boolean; hasFirst: boolean } | undefined {
  const rules = Object.entries(NAMES).find(([, one]) => one === (ALIASES[name] ?? name))?.[0];
  if (rules === undefined) return undefined;
  const last = { ...BYTE_LEVEL, use_regex: !rules.startsWith('split ') };
  const Regex = rules.replace(/^split /, '');
  const first = last.use_regex
    ? { type: 'Digits', individual_digits: true }
    : { type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false };
  const isWhole = WHOLE_WORDS.test(name);
  return {
    preTokenizer: rules === 'gpt2' ? last : { type: 'Sequence', pretokenizers: [first, last] },
    ...{ ignoreMerges: isWhole, hasFirst: isWhole },
  };
}

/** llama.cpp's name of a byte-level pre-tokenizer; undefined for one it does not have. */
export function preTokenizerName(preTokenizer: JsonValue | undefined): string | undefined {
  const rules = rulesOf(preTokenizer);
  return rules && NAMES[rules.join(' ')];
}

function rulesOf(value: JsonValue | undefined): string[] | undefined {
  if (!(value instanceof Map)) return undefined;
  if (value.get('type') === 'Sequence') {
    const parts = value.get('pretokenizers');
    if (!Array.isArray(parts)) return undefined;
    const rules = parts.map(rulesOf);
    return rules.some((rule) => rule === undefined) ? undefined : rules.flatMap((rule) => rule!);
  }
  const rule = ruleOf(value);
  return rule === undefined ? undefined : rule === '' ? [] : [rule];
}

/** One rule as a word; empty where it splits nothing, undefined where it is not known. */
function ruleOf(rule: JsonObject): string | undefined {
  switch (rule.get('type')) {
    case 'ByteLevel':
      if (rule.get('add_prefix_space') === true) return undefined;
      return rule.get('use_regex') === false ? '' : 'gpt2';
    case 'Digits':
      return rule.get('individual_digits') === true ? 'digits' : undefined;
    case 'Split': {
      const pattern = rule.get('pattern');
      const regex = pattern instanceof Map ? pattern.get('Regex') : undefined;
      if (typeof regex !== 'string' || isJsonNumber(regex)) return undefined;
      return `split ${regex}`;
    }
    default:
      return undefined;
  }
}
