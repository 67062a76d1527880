/** What is wrong with small files that are copied. */
import { TOKEN_FIELDS } from './chat-template';
import { headerLength, parseSafetensorsHeader } from './safetensors-header';
import { isJsonNumber, parseStrictJson } from './strict-json';
import { BOOLEAN, type Fields, fieldsFault, ID, kind, mapOf, maybe, tokenizerFault } from './tokenizer-fault';
import { TOKENIZER_JSON_RULES } from './tokenizer-json';

/**
 * What keeps transformers 5 from loading a tokenizer_config.json or special_tokens_map.json, in words that go behind its name:
 * a special token that is no text, templates that have no name (tokenization_utils_base.py).
 */
function settingsFault(config: Readonly<Record<string, unknown>>): string | undefined {
  const isToken = (token: unknown) => token === null || typeof (Object(token).content ?? token) === 'string';
  const token = TOKEN_FIELDS.find((name) => config[name] !== undefined && !isToken(config[name]));
  if (token !== undefined) return `gives ${token} something that is no text`;
  const { chat_template } = config;
  const templates = Array.isArray(chat_template)
    ? chat_template.flatMap((each) => [Object(each).name as unknown, Object(each).template as unknown])
    : chat_template && typeof chat_template === 'object'
      ? Object.values(chat_template)
      : [chat_template ?? ''];
  return templates.every((text) => typeof text === 'string')
    ? undefined
    : 'has a chat_template that is neither a text nor texts with names';
}

/**
 * What is wrong with a small file that is copied, in words that go behind its name; undefined for one that is whole as far as
 * its bytes tell: a pointer or a web page in its place, JSON that does not parse, weights or a SentencePiece model cut off.
 */
export function fileFault(path: string, bytes: Uint8Array<ArrayBuffer>): string | undefined {
  const begin = new TextDecoder().decode(bytes.subarray(0, 512)).trimStart();
  if (begin.startsWith('version https://git-lfs')) return 'is not the file but a git-lfs pointer to it';
  if (begin.startsWith('# xet version')) return 'is not the file but a pointer to it (Xet)';
  if (/^<(?:!doctype\s+html|html)\b/i.test(begin) && !/\.html?$/i.test(path)) return 'is a web page';
  if (path.endsWith('.json')) {
    if (`${bytes.subarray(0, 3)}` === '239,187,191')
      return 'begins with a byte order mark, with which transformers does not read it: save it as UTF-8 without one';
    const json = parsed(bytes);
    if ('fault' in json) return json.fault;
    if (OBJECTS.test(path) && !json.text.trimStart().startsWith('{')) return 'is not an object';
    if (SETTINGS.test(path)) return settingsFault(JSON.parse(json.text) as Record<string, unknown>);
    if (path === 'tokenizer.json') return tokenizerFault(json.text, path);
    const name = path.slice(path.lastIndexOf('/') + 1);
    if (TOKEN_IDS.test(name)) {
      const ids = parseStrictJson(json.text, path, TOKENIZER_JSON_RULES);
      return mapOf(ID_OR_IDS).has(ids) ? undefined : 'gives a token something that is no id';
    }
    if (name === 'generation_config.json') {
      const config = parseStrictJson(json.text, path, TOKENIZER_JSON_RULES);
      return config instanceof Map ? fieldsFault(config, GENERATION, 'its') : undefined;
    }
  }
  if (path.endsWith('.model') && !isWholeProtobuf(bytes)) return 'is cut off, or no SentencePiece model';
  if (path.endsWith('.safetensors')) {
    try {
      const end = 8 + headerLength(bytes.subarray(0, 8), bytes.length, path);
      parseSafetensorsHeader(bytes.subarray(8, end), bytes.length, path);
    } catch {
      return 'is no whole safetensors file';
    }
  }
  return undefined;
}

/** What transformers reads as an object. */
const OBJECTS =
  /(?:^|\/)(?:tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab|chat_template|generation_config|(?:(?:video_)?pre)?processor_config)\.json$/;

/** A token → id in each; a speech model's vocab.json has one for each language. */
const TOKEN_IDS = /^(?:added_tokens|vocab)\.json$/;

const ID_OR_IDS = kind('an id', (value) => ID.has(value) || mapOf(ID).has(value));

const NUMBER = maybe(kind('a number', isJsonNumber));
/** What transformers computes with when it generates; where it is something else, it fails at the first token. */
const GENERATION: Fields = {
  ...Object.fromEntries(
    [
      'temperature',
      'top_k',
      'top_p',
      'min_p',
      'typical_p',
      'repetition_penalty',
      'no_repeat_ngram_size',
      'length_penalty',
      'num_beams',
      'max_length',
      'max_new_tokens',
    ].map((name) => [name, NUMBER]),
  ),
  do_sample: maybe(BOOLEAN),
  use_cache: maybe(BOOLEAN),
};

const SETTINGS = /^(?:tokenizer_config|special_tokens_map)\.json$/;

function parsed(bytes: Uint8Array<ArrayBuffer>): { text: string } | { fault: string } {
  let text = '';
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    JSON.parse(text);
    return { text };
  } catch {
    // Python's json module writes and reads these
    const word = /[:[,\s](NaN|-?Infinity)\s*[,\]}]/.exec(text)?.[1];
    return { fault: word ? `holds ${word}, which is not JSON` : 'is not JSON, or is cut off' };
  }
}

/** Whether bytes are fields of a protobuf message up to the last one (protobuf.dev/programming-guides/encoding). */
function isWholeProtobuf(bytes: Uint8Array): boolean {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * shift;
      if (byte < 128) return value;
    }
    return Number.NaN;
  };
  while (at < bytes.length) {
    const kind = varint() % 8;
    if (kind === 0) varint();
    else if (kind === 1) at += 8;
    else if (kind === 2) at += varint();
    else if (kind === 5) at += 4;
    else return false;
  }
  return at === bytes.length && at > 0;
}
