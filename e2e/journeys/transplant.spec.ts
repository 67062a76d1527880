/** Another model's tokenizer from a terminal: what the plan says, what is written, and that it is what was measured. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BYTE_LETTERS } from '../../src/formats/byte-letters';
import type { EvaluateManyReport } from '../../src/reports/evaluate';
import type { TransplantPlan, TransplantReport } from '../../src/tools/transplant/report';
import { writeSmallSample } from '../disk-folder';
import { readSafetensors } from './merged-folder';
import { amalgam, beginning, expect, readJson, test, work } from './studio';

let base: string;
let text: string;
test.beforeEach(async () => {
  base = join(work, 'base');
  await writeSmallSample('base', base, { layers: 2 });
  text = beginning('common', 300);
  const donor = join(work, 'donor');
  mkdirSync(donor);
  // bytes in another order, words that the sample has, and some that it lacks
  const tokens = [...BYTE_LETTERS.toReversed(), 'Ġthe', 'ing', 'Ġthezing', 'qqq', 'Ġ42nd', '<|end|>'];
  const special = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const shape = [tokens.length, 16];
  const rows = Float32Array.from({ length: tokens.length * 16 }, (_, i) => Math.sin(i * i + 1));
  const dtype = 'F32';
  const header = Buffer.from(
    JSON.stringify({
      'model.embed_tokens.weight': { dtype, shape, data_offsets: [0, rows.byteLength] },
    }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  writeFileSync(join(donor, 'model.safetensors'), Buffer.concat([length, header, Buffer.from(rows.buffer)]));
  const config = { model_type: 'llama', hidden_size: 16, num_hidden_layers: 0, vocab_size: shape[0] };
  writeFileSync(
    join(donor, 'config.json'),
    JSON.stringify({ ...config, tie_word_embeddings: true, eos_token_id: 261 }),
  );
  writeFileSync(
    join(donor, 'tokenizer.json'),
    JSON.stringify({
      added_tokens: [{ ...special, id: 261, content: '<|end|>' }],
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
      decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
      model: {
        type: 'BPE',
        vocab: Object.fromEntries(tokens.slice(0, -1).map((token, id) => [token, id])),
        merges: [],
      },
    }),
  );
});

for (const engine of ['cpu', 'webgpu']) {
  test(`on ${engine}: planned, written, and as good as measured`, async () => {
    const out = join(work, 'out');
    const reportOf = (name: string) => join(work, `${name}.json`);
    const both = [base, join(work, 'donor'), '--engine', engine, '--k', '8'];
    const planned = await amalgam(['transplant', ...both, '--plan', '--report', reportOf('plan')]);
    expect(planned.code).toBe(0);
    const plan = readJson(reportOf('plan')) as TransplantPlan;
    expect(plan.tokens.new).toBeGreaterThan(0);
    expect(planned.stdout).toContain('multiply-adds, about');

    const { code, stdout } = await amalgam([
      ...['transplant', ...both, '--text', text, '--out', out, '--report', reportOf('made')],
    ]);
    expect(code).toBe(0);
    const made = readJson(reportOf('made')) as TransplantReport;
    expect(made.tokens).toEqual(plan.tokens);
    expect(stdout).toContain(`${made.quality!.after.bitsPerByte.toFixed(4)} ±`);
    expect(readJson(out, 'config.json')).toMatchObject({ vocab_size: 262, eos_token_id: 261 });
    expect(readFileSync(join(out, 'README.md'), 'utf8')).toContain('with the tokenizer of');

    // a row that both have, byte for byte, and all that is no row of a token
    const [before, after] = [base, out].map((folder) =>
      readSafetensors(readFileSync(join(folder, 'model.safetensors'))),
    ) as [ReturnType<typeof readSafetensors>, ReturnType<typeof readSafetensors>];
    const vocabulary = (readJson(base, 'tokenizer.json') as { model: { vocab: Record<string, number> } })
      .model.vocab;
    const embedding = [before, after].map(({ tensors }) => tensors.get('model.embed_tokens.weight')!);
    const width = embedding[0]!.bytes.length / embedding[0]!.shape[0]!;
    const row = (of: number, id: number) =>
      Buffer.from(embedding[of]!.bytes.slice(id * width, (id + 1) * width));
    expect(row(1, 255 - 0x61)).toEqual(row(0, vocabulary.a!));
    for (const [name, { bytes }] of before.tensors) {
      if (!/embed_tokens|lm_head/.test(name))
        expect(Buffer.from(after.tensors.get(name)!.bytes)).toEqual(Buffer.from(bytes));
    }

    const evaluated = await amalgam([
      ...['evaluate', out, base, '--text', text, '--engine', engine, '--report', reportOf('evaluated')],
    ]);
    expect(evaluated.code).toBe(0);
    const { models } = readJson(reportOf('evaluated')) as EvaluateManyReport;
    const bits = models.map(({ outcomes: [outcome] }) =>
      outcome && 'report' in outcome ? outcome.report.bitsPerByte! : Number.NaN,
    );
    expect(bits[0]).toBeCloseTo(made.quality!.after.bitsPerByte, 9);
    // other tokens: compared by the byte
    const lines = evaluated.stdout.split('\n');
    expect(lines[0]).toContain('bits per byte');
    for (const of of bits) expect(lines.some((line) => line.includes(of.toFixed(4)))).toBe(true);
    expect(evaluated.stdout).not.toMatch(/better|worse|told apart/);
  });
}

test('what cannot be done is said, and nothing is written', async () => {
  const out = join(work, 'never');
  rmSync(join(work, 'donor/tokenizer.json'));
  const { code, stderr } = await amalgam(['transplant', base, join(work, 'donor'), '--out', out]);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/tokenizer\.json/);
  expect(existsSync(join(out, 'model.safetensors'))).toBe(false);
});
