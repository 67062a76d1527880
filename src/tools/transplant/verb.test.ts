import { describe, expect, test } from 'vitest';
import { qualityOf } from './job';
import { formOf } from './transplant.test.support';
import { verb } from './verb';
import { planText, transplantText } from './words';

const parse = (...args: string[]) => verb.parse(args);

describe('transplant', () => {
  test('two models; every option is a flag', () => {
    const { subjects, options } = parse(
      ...['m', 'd', '--out', 'o', '--way', 'subwords', '--weighting=weighted', '--magnitude', 'donor'],
      ...['--landmarks=99', '--pad-to-multiple-of', '64', '--text', 'a.txt', '--text', 'b.txt'],
    );
    expect(subjects).toEqual(['m', 'd']);
    expect(options).toMatchObject({
      way: 'subwords',
      weighting: 'weighted',
      magnitude: 'donor',
      landmarks: 99,
    });
    expect(options).toMatchObject({ padToMultipleOf: 64, text: ['a.txt', 'b.txt'], out: 'o' });
    expect(parse('m', 'd', '--plan').options).toMatchObject({ plan: true, way: 'omp' });
  });

  test.each([
    [['m', '--out', 'o'], /donor/],
    [['m', 'd'], /--out DIR/],
    [['m', 'd', '--plan', '--out', 'o'], /--out does not go with it/],
    [['m', 'd', '--out', 'o', '--way', 'luck'], /--way is luck/],
    [['m', 'd', '--out', 'o', '--k', '0'], /--k is 0/],
  ])('%j is refused in words', (args, words) => {
    expect(() => parse(...args)).toThrow(words);
  });
});

const SAID = {
  ...{ model: 'm', donor: 'd', form: formOf(), landmarks: 500, notes: [] },
  ...{ rows: { before: 800, after: 990 }, tokens: { shared: 700, special: 2, new: 950 } },
  ...{ multiplyAdds: 2.5e12, peakBytes: 3e8, seconds: 90 },
};

test('the plan says how long the rows take; the report what they are worth', () => {
  const plan = planText({ ...SAID, bytesToRead: 1e6, bytesToWrite: 2e6 }).replace(/\s/g, ' ');
  expect(plan).toContain('700 tokens of both, 2 of them special; 950 new; 800 → 990 rows');
  expect(plan).toContain('of up to 64 of 500 shared tokens (orthogonal matching pursuit)');
  expect(plan).toContain('2.5e+12 multiply-adds, about 1 min 30 s here');
  const block = { loss: 64 * Math.LN2, tokens: 64 };
  const report = { meanNll: Math.LN2, tokens: 192, blocks: [block, block, block], perplexity: 2 };
  const before = qualityOf([report as never], [384]);
  expect(before).toMatchObject({ perplexity: 2, tokens: 192 });
  expect(before.bitsPerByte).toBeCloseTo(0.5, 12);
  const text = transplantText(
    {
      ...{
        ...SAID,
        engine: 'cpu',
        adapter: 'WebAssembly',
        version: '1',
        fitSeconds: 80,
        stages: {} as never,
      },
      ...{ left: [{ tensor: 'e', mean: 0.25 }], inputs: [], shards: [], files: [] },
      quality: { before, after: { ...before, bitsPerByte: 0.75, margin: 0.01 } },
    },
    'out',
  ).replace(/\s/g, ' ');
  expect(text).toContain('e: 25.0 % of the donor');
  expect(text).toContain('0.5000 ± 0.0000 bits per byte before, 0.7500 ± 0.0100 bits per byte after');
});

test('the error of bits per byte over texts is that of the sum of their losses', () => {
  const of = (losses: number[]) => ({
    meanNll: losses.reduce((a, b) => a + b, 0) / 128,
    ...{ tokens: 128, blocks: losses.map((loss) => ({ loss, tokens: 64 })), perplexity: 1 },
  });
  const [a, b] = [of([60, 70]), of([90, 50])] as never[];
  const [one, two, both] = [qualityOf([a!], [100]), qualityOf([b!], [300]), qualityOf([a!, b!], [100, 300])];
  expect(both.bitsPerByte).toBeCloseTo((one.bitsPerByte * 100 + two.bitsPerByte * 300) / 400, 12);
  expect(both.margin).toBeCloseTo(Math.hypot(one.margin! * 100, two.margin! * 300) / 400, 12);
});
