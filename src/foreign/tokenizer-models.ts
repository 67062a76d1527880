/** Words as ids and tokens as a text, as Rust's `tokenizers` 0.23 has them; notes on the library as in tokenizer-parts.ts. */
import { BPE, Unigram, WordPiece } from '@huggingface/tokenizers';
import { BYTE_OF_LETTER } from '../formats/byte-letters';
import { expression, field, type Step, unknown } from './tokenizer-parts';

/**
 * Ids of a word. Upstream: unknown tokens are made one across words, and added tokens count as words of the model.
 * @throws Error naming what is not known
 */
export function wordModel(model: Step): (word: string) => number[] {
  const of = (tokenizer: BPE | WordPiece) => (word: string) =>
    tokenizer
      ._call([word])
      .flatMap((token) => tokenizer.tokens_to_ids.get(token) ?? tokenizer.unk_token_id ?? []);
  switch (modelType(model)) {
    case 'BPE': {
      if (model.continuing_subword_prefix) throw new Error('its BPE has a continuing_subword_prefix');
      if (model.dropout) throw new Error('its BPE drops merges at random');
      return of(new BPE(model as never));
    }
    case 'WordPiece':
      return of(new WordPiece(model as never));
    case 'WordLevel': {
      const vocabulary = new Map(Object.entries(model.vocab as Record<string, number>));
      const missing = vocabulary.get(String(model.unk_token));
      return (word) => {
        const id = vocabulary.get(word) ?? missing;
        if (id === undefined) throw new Error('its WordLevel has no token for unknown words');
        return [id];
      };
    }
    case 'Unigram':
      return unigram(model);
    default:
      throw unknown('model', model);
  }
}

/** `type`, which old files leave out. */
export function modelType({ type, vocab, merges }: Step): string {
  return type ?? (Array.isArray(vocab) ? 'Unigram' : merges === undefined ? 'WordPiece' : 'BPE');
}

/** Upstream: no `byte_fallback`; the token for unknown ones has a score of its own where it is written out. */
function unigram(model: Step): (word: string) => number[] {
  const { unk_id, byte_fallback } = model;
  if (typeof unk_id !== 'number') throw new Error('its Unigram has no token for unknown characters');
  const tokenizer = new Unigram(model as never, '');
  tokenizer.scores[unk_id] = (model.vocab as [string, number][])[unk_id]![1];
  const ids = tokenizer.tokens_to_ids;
  const encoder = new TextEncoder();
  const bytes = (text: string) =>
    Array.from(encoder.encode(text), (byte) =>
      ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`),
    );
  return (word) => {
    const made: number[] = [];
    let strange = '';
    const tell = () => {
      const fallback = byte_fallback === true && strange !== '' ? bytes(strange) : [undefined];
      if (strange !== '') made.push(...(fallback.includes(undefined) ? [unk_id] : (fallback as number[])));
      strange = '';
    };
    for (const token of tokenizer.tokenize(word)) {
      const id = ids.get(token);
      if (id === undefined) {
        strange += token;
        continue;
      }
      tell();
      made.push(id);
    }
    tell();
    return made;
  };
}

/** How tokens become a text: parts of it, to be joined. @throws Error naming what is not known */
export function decoder(step: Step | null | undefined): (tokens: string[]) => string[] {
  if (!step) return (tokens) => [tokens.join(' ')];
  switch (step.type) {
    case 'Sequence': {
      const steps = field(step, 'decoders').map(decoder);
      return (tokens) => steps.reduce((made, one) => one(made), tokens);
    }
    // upstream: a character whose bytes are around an added token falls apart
    case 'ByteLevel': {
      const encoder = new TextEncoder();
      return (tokens) => [
        utf8(
          tokens.flatMap((token) => {
            const bytes = Array.from(token, (letter) => BYTE_OF_LETTER.get(letter));
            return bytes.includes(undefined) ? [...encoder.encode(token)] : (bytes as number[]);
          }),
        ),
      ];
    }
    // upstream: bytes that are no text make fewer replacement characters, and a byte order mark is lost
    case 'ByteFallback':
      return byteFallback;
    case 'WordPiece':
      return (tokens) => tokens.map((token, i) => wordPiece(step, token, i === 0));
    // upstream: of the first token only one mark is left out
    case 'Metaspace': {
      const mark = String(step.replacement ?? '\u2581');
      const isMarked = step.add_prefix_space !== false && step.prepend_scheme !== 'never';
      return (tokens) => tokens.map((token, i) => token.replaceAll(mark, i === 0 && isMarked ? '' : ' '));
    }
    case 'BPEDecoder': {
      const suffix = String(step.suffix ?? '</w>');
      return (tokens) =>
        tokens.map((token, i) => token.replaceAll(suffix, i === tokens.length - 1 ? '' : ' '));
    }
    // upstream: `$&` in the content is read as what was found
    case 'Replace': {
      const pattern = expression(step);
      return (tokens) => tokens.map((token) => token.replace(pattern, () => String(step.content)));
    }
    case 'Fuse':
      return (tokens) => [tokens.join('')];
    case 'Strip':
      return (tokens) => tokens.map((token) => stripped(step, token));
    default:
      throw unknown('decoder', step);
  }
}

function utf8(bytes: readonly number[]): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

function textOrReplacements(bytes: readonly number[]): string[] {
  try {
    return [new TextDecoder('utf-8', { ignoreBOM: true, fatal: true }).decode(Uint8Array.from(bytes))];
  } catch {
    return bytes.map(() => '\ufffd');
  }
}

function byteFallback(tokens: readonly string[]): string[] {
  const made: string[] = [];
  let bytes: number[] = [];
  const tell = () => {
    if (bytes.length > 0) made.push(...textOrReplacements(bytes));
    bytes = [];
  };
  for (const token of tokens) {
    const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token);
    if (byte) {
      bytes.push(Number.parseInt(byte[1]!, 16));
      continue;
    }
    tell();
    made.push(token);
  }
  tell();
  return made;
}

function wordPiece({ prefix, cleanup }: Step, token: string, isFirst: boolean): string {
  const mark = String(prefix ?? '##');
  const spaced = isFirst ? token : token.startsWith(mark) ? token.slice(mark.length) : ` ${token}`;
  return cleanup === false ? spaced : cleaned(spaced);
}

/** `clean_up_tokenization` of transformers. */
export function cleaned(text: string): string {
  return text
    .replace(/ ([.?!,])/g, '$1')
    .replaceAll(" ' ", "'")
    .replace(/ (n't|'m|'s|'ve|'re)/g, '$1');
}

function stripped({ content, start, stop }: Step, token: string): string {
  const chars = Array.from(token);
  const run = (from: readonly string[], most: unknown) => {
    const end = from.slice(0, Number(most ?? 0)).findIndex((char) => char !== content);
    return end < 0 ? Math.min(Number(most ?? 0), from.length) : end;
  };
  const begin = run(chars, start);
  return chars.slice(begin, Math.max(begin, chars.length - run([...chars].reverse(), stop))).join('');
}
