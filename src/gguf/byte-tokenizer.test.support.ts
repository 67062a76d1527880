/** A byte-level tokenizer.json of so many tokens, without merges. */
export function byteLevelTokenizer(vocab: number): string {
  const ids = Array.from({ length: vocab }, (_, id) => [String.fromCodePoint(0x100 + id), id]);
  return JSON.stringify({
    version: '1.0',
    added_tokens: [],
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
    decoder: { type: 'ByteLevel' },
    model: { type: 'BPE', vocab: Object.fromEntries(ids), merges: [] },
  });
}
