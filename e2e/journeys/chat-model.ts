/** A copy of the sample's workshop model with the ids of its tokens turned round and one token more. */

import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SAMPLES } from './studio';

export const CHAT_TOKEN = '<|chat|>';
const EMBEDDING = 'model.embed_tokens.weight';
/** Tokens of the front that keep their ids: the special ones. */
const KEPT = 8;

interface Tokenizer {
  added_tokens: { id: number; content: string; special: boolean }[];
  model: { vocab: Record<string, number> };
}

/** Writes the model to `folder`, which does not exist yet; returns the number of its tokens. */
export function writeChatModel(folder: string): number {
  cpSync(join(SAMPLES, 'workshop'), folder, { recursive: true });
  const read = (name: string) => readFileSync(join(folder, name));
  const config = JSON.parse(read('config.json').toString()) as { vocab_size: number };
  const tokens = config.vocab_size;
  const moved = (id: number) => (id < KEPT ? id : tokens - 1 - (id - KEPT));

  const tokenizer = JSON.parse(read('tokenizer.json').toString()) as Tokenizer;
  for (const [token, id] of Object.entries(tokenizer.model.vocab)) tokenizer.model.vocab[token] = moved(id);
  for (const token of tokenizer.added_tokens) token.id = moved(token.id);
  tokenizer.added_tokens.push({
    ...{ id: tokens, content: CHAT_TOKEN, single_word: false, lstrip: false, rstrip: false },
    ...{ normalized: false, special: true },
  });
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, vocab_size: tokens + 1 }));

  const file = read('model.safetensors');
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + length).toString()) as Record<
    string,
    { shape: number[]; data_offsets: [number, number] }
  >;
  const { data_offsets, shape } = header[EMBEDDING]!;
  const [begin, end] = data_offsets;
  const width = (end - begin) / tokens;
  const data = file.subarray(8 + length);
  const rows = Array.from({ length: tokens }, (_, id) => {
    const was = Array.from({ length: tokens }, (_, i) => i).find((i) => moved(i) === id)!;
    return data.subarray(begin + was * width, begin + (was + 1) * width);
  });
  // the token begins as the mean of nothing in particular: a copy of the first word's row
  rows.push(data.subarray(begin + KEPT * width, begin + (KEPT + 1) * width));
  header[EMBEDDING] = {
    ...header[EMBEDDING]!,
    shape: [tokens + 1, shape[1]!],
    data_offsets: [begin, end + width],
  };
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__' || entry.data_offsets[0] < end) continue;
    entry.data_offsets = entry.data_offsets.map((at) => at + width) as [number, number];
  }
  const text = Buffer.from(JSON.stringify(header).padEnd(Math.ceil(JSON.stringify(header).length / 8) * 8));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  const weights = Buffer.concat([size, text, data.subarray(0, begin), ...rows, data.subarray(end)]);
  writeFileSync(join(folder, 'model.safetensors'), weights);
  return tokens + 1;
}
