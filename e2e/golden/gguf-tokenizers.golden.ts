/** Tokenizers of real models: ids are those of Rust and, written as GGUF, of llama.cpp. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tokenizer as Rust } from 'tokenizers';
import { afterAll, describe, expect, it } from 'vitest';
import { ODD_TEXTS } from '../../src/foreign/odd-texts.test.fixture';
import { createTokenizer } from '../../src/foreign/tokenizer';
import { readTokenizerJson } from '../../src/formats/tokenizer-json';
import { ggufFile } from '../../src/gguf/gguf-file';
import { planGguf } from '../../src/gguf/gguf-plan';
import { readGgufHeader } from '../../src/gguf/read-header';
import { ggufTokenizerTexts } from '../../src/gguf/read-tokenizer';
import { thinModel } from '../../src/gguf/tokenizer.test.support';
import { bufferSource } from '../../src/sources/byte-source';
import { hasLlama, llama } from '../llama-cpp';
import { reference } from './reference';

const folder = join(reference, 'data/tokenizers');
const corpora = join(reference, 'data/corpora');
const scratch = mkdtempSync(join(tmpdir(), 'amalgam-gguf-tokenizers-'));
afterAll(() => rmSync(scratch, { recursive: true }));

/** Spaces, digits, line ends, contractions, other alphabets, marks, joined emoji, half words. */
const ODD = [
  "  two  spaces, it's 1234567.89 and   three\n\n\n\tTab's\r\n end ",
  'Größe, naïve, Ωμέγα, Привет мир, 你好，世界。こんにちは 안녕 שלום مرحبا हिन्दी',
  '👩‍👩‍👧 🇩🇪 e\u0301 ﬁ ½ ² _under__score_ x=y+1; // a/b\\c <b>&amp;</b> {"k":[1,2]}',
  "I'LL we'Ve don’t   \n  \n x\u00a0y\u3000z 100 000 3,14 v1.2.3",
];

it.each(['gpt2', 'gpt-neox', 'tinyllama'])('%s: ids and texts of Rust', async (name) => {
  const tokenizer = readFileSync(join(folder, name, 'tokenizer.json'), 'utf8');
  const [rust, ours] = [
    Rust.fromString(tokenizer),
    createTokenizer({ tokenizer, hasSentencePiece: false }, name),
  ];
  for (const text of [...ODD_TEXTS, ...ODD]) {
    const ids = (await rust.encode(text, null, { addSpecialTokens: false })).getIds();
    expect(ours.encode(text)).toEqual(ids);
    expect(ours.decode(ids)).toBe(await rust.decode(ids, true));
  }
});

// runs wherever llama.cpp's package exists, and fails where it should and does not (e2e/llama-cpp.ts)
describe.runIf(hasLlama)('in llama.cpp', () => {
  it.each(['gpt2', 'gpt-neox', 'tinyllama'])('%s', async (name) => {
    const text = readFileSync(join(folder, name, 'tokenizer.json'), 'utf8');
    const { ids } = readTokenizerJson(text, name);
    const { config, tensors } = thinModel(Math.max(...ids.values()) + 1);
    const plan = planGguf({ type: 'F32', name, config, tensors, tokenizer: { tokenizer: text } });
    const { header, byteLength } = ggufFile('m.gguf', plan, [...plan.tensors.keys()]);
    const path = join(scratch, `${name}.gguf`);
    writeFileSync(path, Buffer.concat([header, Buffer.alloc(byteLength - header.length)]));
    const ours = createTokenizer({ tokenizer: text, hasSentencePiece: false }, name);
    const model = llama().open(path);
    try {
      const corpus = ['wikitext-2_test.txt', 'tinyshakespeare.txt'].map((file) =>
        readFileSync(join(corpora, file), 'utf8').slice(0, 200_000),
      );
      // of a form of Unicode that the tokenizer asks for the plan warns
      const form = plan.warnings.length > 0 ? 'NFC' : undefined;
      const odd = form === undefined ? ODD : ODD.map((each) => each.normalize(form));
      const texts = [...odd, ...corpus.flatMap((each) => each.split(/(?<=\n)(?=\n)/))];
      const wrong = texts.filter(
        (each) => each !== '' && model.tokenize(each, false).join() !== ours.encode(each).join(),
      );
      expect(wrong).toEqual([]);
      // and so does the tokenizer that is read from the file
      const { metadata } = await readGgufHeader(bufferSource(Uint8Array.from(readFileSync(path))), name);
      const read = ggufTokenizerTexts({ metadata, fileName: name, tensors: new Map(), factors: new Map() });
      const back = createTokenizer({ ...read, hasSentencePiece: false }, name);
      expect(texts.filter((each) => back.encode(each).join() !== ours.encode(each).join())).toEqual([]);
    } finally {
      model.close();
    }
  });
});
