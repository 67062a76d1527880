/** Ids of special tokens in config.json and generation_config.json, brought to the output's vocabulary. */
import { editJsonObject, type JsonEdit } from '../../formats/json-edit';
import { isJsonNumber, type JsonObject, type JsonValue } from '../../formats/strict-json';
import { nameSome, type Problems } from '../../inputs/problems';
import type { OutputVocabulary } from './output-vocabulary';
import type { KnownVocabulary } from './vocabulary';

/** Map from the ids in a config to those of the output. */
export interface TokenIds {
  /** Id in the output of the token that has this id in the config; undefined where the output lacks the token. */
  map(id: number): number | undefined;
  ref: string;
}

/** Undefined where every token keeps its id, so that nothing has to be written anew. */
export function tokenIds(config: KnownVocabulary, output: OutputVocabulary): TokenIds | undefined {
  const moved = [...config.ids].some(([token, id]) => output.ids.get(token) !== id);
  if (!moved) return undefined;
  const tokens = new Map([...config.tokens.ids].map(([token, id]) => [id, token]));
  return {
    ref: config.ref,
    map: (id) => {
      const token = tokens.get(id);
      // an id beyond the tokenizer means nothing; it stays
      return token === undefined ? id : output.ids.get(token);
    },
  };
}

/** `eos_token_id`, `forced_bos_token_id`, `suppress_tokens`, …: a number, or a list of numbers. */
const KEY = /_token_ids?$|^(?:begin_)?suppress_tokens$/;

/** The text with every id of a token changed, at the top and in `text_config`. Ids of missing tokens are removed and reported. */
export function withTokenIds(
  text: string,
  raw: JsonObject,
  ids: TokenIds,
  fileName: string,
  problems: Problems,
): string {
  const gone: string[] = [];
  const editsOf = (object: JsonObject): Map<string, JsonEdit> => {
    const edits = new Map<string, JsonEdit>();
    for (const [key, value] of object) {
      if (!KEY.test(key)) continue;
      const change = changed(value, ids);
      if (change === undefined) continue;
      if (change.lost) gone.push(key);
      edits.set(key, change.value);
    }
    return edits;
  };
  const edits = editsOf(raw);
  const inner = raw.get('text_config');
  if (inner instanceof Map) {
    const nested = editsOf(inner);
    if (nested.size > 0) edits.set('text_config', (part) => editJsonObject(part, nested));
  }
  if (gone.length > 0) {
    problems.warn(
      'SpecialTokenMissing',
      `${fileName} of ${ids.ref} names tokens that the output does not have: ${nameSome(gone)}.`,
      `Set ${nameSome(gone)} in ${fileName} of the output, or choose tokenizer_source: union.`,
    );
  }
  return editJsonObject(text, edits);
}

function changed(
  value: JsonValue,
  ids: TokenIds,
): { value: number | number[] | null; lost: boolean } | undefined {
  const list = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every(isJsonNumber)) return undefined;
  const before = list.map((item) => Number(item.text));
  const after = before.map((id) => ids.map(id));
  if (after.every((id, i) => id === before[i])) return undefined;
  const found = after.filter((id) => id !== undefined);
  const lost = found.length < after.length;
  return { value: Array.isArray(value) ? found : (found[0] ?? null), lost };
}
