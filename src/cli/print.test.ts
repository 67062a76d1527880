import { expect, test } from 'vitest';
import type { BestRow, FindBestReport } from '../reports/find-best';
import type { Progress } from '../reports/job';
import type { PlanReport } from '../reports/plan';
import { bestRowText, bestText } from './best-text';
import { planText, problemLines, progressPrinter, progressText } from './print';
import { evaluationsText, scoresText } from './verbs/evaluate';
import { verifiedMerge, verifyText } from './verify-text';

const plain = (text: string) => text.replaceAll(/[\u00a0\u202f]/g, ' ');

const tensor = { layer: null, module: 'embed', shape: [8, 4], dtype: 'BF16', elements: 32 };
const report: PlanReport = {
  problems: [
    { severity: 'note', code: 'Tied', message: 'The head is tied.', remedy: 'No action needed.' },
    {
      severity: 'error',
      code: 'ShapeMismatch',
      message: 'b has 9 rows.',
      remedy: 'Leave b out.',
      tensors: ['embed', 'evil\u202e'],
    },
  ],
  clean: false,
  tensors: [
    { ...tensor, name: 'embed', copied: false, contributors: [0, 1] },
    { ...tensor, name: 'a.very.long.name', copied: true, contributors: [] },
  ],
  contributors: ['a', 'b'],
  base: 'base',
  bytesToDownload: 0,
  bytesToRead: 2_540_000,
  bytesToWrite: 1500,
  peakBytes: 3_000_000_000,
  outputFiles: ['model.safetensors'],
  layers: 0,
};

test('a problem of many tensors names the first of them', () => {
  const tensors = Array.from({ length: 57 }, (_, i) => `t${i}`);
  const problem = { severity: 'error' as const, code: 'OutOfRange', message: 'No.', remedy: 'Yes.', tensors };
  expect(problemLines([problem])[2]).toBe('  tensors: t0, t1, t2, t3, t4, t5, t6, t7 and 49 more');
});

test('a plan says what it costs, lists every tensor in columns and ends with the problems, errors first', () => {
  const lines = plain(planText(report, 'ties')).split('\n');
  expect(lines).toContain('write        1.50 kB in 1 shard');
  const withGguf = { ...report, outputFiles: ['model.safetensors', 'model-Q4_K_M.gguf'] };
  expect(plain(planText(withGguf, 'ties'))).toMatch(/in 1 shard and a GGUF file[\s\S]*, DIR-Q4_K_M\.gguf/);
  expect(lines).toContain('tensors      2, 1 of them copied untouched');
  expect(lines).toContain('embed             8 × 4  BF16   a, b');
  expect(lines).toContain('a.very.long.name  8 × 4  BF16   copied');
  expect(lines.slice(-6)).toEqual([
    '',
    'error: b has 9 rows.',
    '  tensors: embed, evil\\u{202e}',
    '  Leave b out.',
    'note: The head is tied.',
    '  No action needed.',
  ]);
});

const progress: Omit<Progress, 'finished'> = {
  phase: 'merging',
  item: 'embed',
  tensorsDone: 1,
  tensors: 2,
  bytesDone: 500,
  bytes: 1500,
  bytesPerSecond: 100,
  secondsLeft: 10,
  stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
};

test('a verification says how far the tensors that differ are', () => {
  const shard = (differing: [string, number | null][], tensors = 4) => ({
    ...{ file: 'model.safetensors', isHeaderSame: true, tensors },
    differing: differing.map(([name, steps]) => ({ name, steps })),
  });
  const files = { listed: 4, missing: ['tokenizer.json'], differing: ['config.json'], unlisted: ['x.py'] };
  const found = {
    ...{
      agrees: false,
      files,
      engine: 'cpu' as const,
      seconds: 1,
      changedInputs: [],
      outputs: {},
      inputs: {},
    },
    ...{ uncheckedInputs: ['b/gone.safetensors'], family: [], licenses: [] },
  };
  const shards = [
    shard([
      ['lm_head', 1],
      ['model.norm.weight', 3],
    ]),
  ];
  const text = plain(verifyText({ ...found, shards }));
  expect(text).toContain(
    'The bytes differ: within one rounding in 3 of 4 tensors, 2 of them to the bit; model.norm.weight by up to 3 steps of its dtype; lm_head by up to 1 step of its dtype.\n',
  );
  const of = { model: 'm', recipe: '', version: '' };
  const verdictOf = (...shards: Parameters<typeof verifyText>[0]['shards']) =>
    verifiedMerge({ ...found, shards }, of).verdict;
  expect(verdictOf(...shards)).toBe('some other weights');
  expect(verdictOf(shard([['lm_head', 1]]))).toBe('within one rounding');
  expect(text).toContain('1 file missing: tokenizer.json\n');
  expect(text).toContain('not looked at, since the recipe here reads no such file: b/gone.safetensors\n');
  expect(text).toContain('1 file with other bytes than were written: config.json\n');
  expect(text).toContain('1 file that the merge did not write: x.py\n');
  const other = shard(
    ['a', 'b', 'c'].map((name) => [name, name === 'a' ? null : 900]),
    4,
  );
  expect(plain(verifyText({ ...found, shards: [other] }))).toContain(
    'Not this recipe: other weights in 3 of 4 tensors: a is not there in that shape and dtype; b by up to 900 steps',
  );
  expect(verdictOf(other)).toBe('another recipe');
  expect(plain(verifyText({ ...found, shards: [other], changedInputs: ['x'] }))).toContain(
    'Not of these inputs:',
  );
  const all = { listed: 4, missing: [], differing: [], unlisted: [] };
  expect(plain(verifyText({ ...found, shards: [shard([])], agrees: true, files: all }))).toContain(
    'The bytes agree with its recipe: 1 shard; 3 other files as written',
  );
});

test('of models without a plan only the mistakes are printed; names without effect, with the option that refuses them', () => {
  const { problems } = report;
  const empty = { ...report, tensors: [], elsewhere: [{ setting: 'dtype', consequence: 'It differs.' }] };
  expect(planText(empty, 'passthrough')).toBe(problemLines(problems).slice(1, 4).join('\n'));
  for (const code of ['KeyIgnored', 'ParameterIgnored'])
    expect(problemLines([{ ...problems[0]!, code }]).at(-1)).toMatch(/--strict/);
  expect(problemLines(problems).join()).not.toContain('--strict');
});

test('two that few blocks or items do not tell apart are said to be few, with what it takes', () => {
  const losses = (by: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ loss: 64 * (1 + by * (1 + (i % 3))), tokens: 64 }));
  const protocol = { window: 256, stride: 128, bos: null };
  const computed = { seconds: 1, engine: 'cpu', adapter: '', peakBytes: 1 } as const;
  const lineOf = (by: number, count: number) => {
    const models = [0, by].map((more) => {
      const blocks = losses(more, count);
      const means = { perplexity: 2, meanNll: 1, bitsPerByte: 1 };
      return {
        bytes: 1,
        outcomes: [{ report: { ...computed, ...means, protocol, tokens: 64 * count, blocks } }],
      };
    });
    return plain(evaluationsText({ models, seconds: 1 }, ['a', 'b']).split('\n')[2]!);
  };
  const few = 'are few for Student’s t: take a text of 640 tokens or more)';
  // more than three times its error, which is that of two degrees of freedom
  expect(lineOf(0.1, 3)).toContain(`0.20000 ± 0.05774, cannot be told apart (3 blocks ${few}`);
  expect(lineOf(0.001, 1)).toContain('0.00100, cannot be told apart (1 block is few for');
  expect(lineOf(0, 12)).toMatch(/0\.00000 ± 0\.00000, cannot be told apart$/);
  const task = {
    ...{ task: 't', version: 1, outputType: 'multiple_choice' as const },
    ...{ dataset: null, subset: null, split: null, metrics: ['acc'] },
    ...{ fewshot: 0, original: 4, effective: 4, sampleSeed: null },
  };
  const scored = (values: number[]) => ({
    ...{ tokens: 4, seconds: 1, engine: null },
    tasks: [
      {
        score: {
          metrics: { acc: { value: 0.5, stderr: 0.25 } },
          items: values.map((acc, docId) => ({
            ...{ docId, target: 0, loglikelihoods: [], isGreedy: [], values: { acc } },
          })),
        },
      },
    ],
  });
  const of = (values: number[]) =>
    plain(scoresText({ tasks: [task], models: [values, values].map(scored) }, ['a', 'b']));
  expect(of([0, 1, 0, 1])).toMatch(
    /over 4 items, cannot be told apart \(4 items are few .*: take 10 or more\)$/,
  );
  expect(of(Array.from({ length: 10 }, () => 1))).toMatch(/over 10 items, cannot be told apart$/);
});

test('progress of which nothing is counted yet has no count', () => {
  for (const phase of ['preparing', 'running', 'downloading'] as const)
    expect(progressText({ phase, done: 0, total: 0, rate: 0, secondsLeft: null })).toBe(phase);
});

test('progress is one line', () => {
  expect(plain(progressText(progress))).toBe(
    'merging · 1/2 tensors · 500 B of 1.50 kB · 100 B/s · about 10 s left · embed',
  );
  expect(
    plain(
      progressText({
        ...progress,
        phase: 'planning',
        tensors: 0,
        bytes: 0,
        bytesPerSecond: 0,
        secondsLeft: null,
        item: '',
      }),
    ),
  ).toBe('planning');
});

test('a log gets a line per phase and per ten seconds; a terminal one line that is written over', () => {
  let clock = 0;
  const log: string[] = [];
  const printer = progressPrinter({ write: (text) => log.push(text) }, () => clock);
  for (const [at, phase] of [
    [0, 'planning'],
    [1, 'merging'],
    [5, 'merging'],
    [12, 'merging'],
  ] as const) {
    clock = at * 1000;
    printer.print({ ...progress, phase });
  }
  printer.end();
  expect(log.map((line) => line.split(' ')[0])).toEqual(['planning', 'merging', 'merging']);
  expect(log.every((line) => line.endsWith('\n'))).toBe(true);

  const terminal: string[] = [];
  const live = progressPrinter({ isTTY: true, columns: 20, write: (text) => terminal.push(text) }, () => 0);
  live.print(progress);
  live.print(progress);
  live.end();
  expect(terminal).toHaveLength(3);
  expect(terminal[1]).toBe(`\r\x1b[K${progressText(progress).slice(0, 19)}`);
  expect(terminal[2]).toBe('\n');
});

const left = { methods: 0, gram: 0, search: 0 };

test('what finding the best ends with names the models that the merge is worse than', () => {
  const blocks = (loss: number) => [
    Array.from({ length: 10 }, (_, i) => ({ loss: 64 * (loss + 0.001 * (i % 3)), tokens: 64 })),
  ];
  const row = (id: string, kind: BestRow['kind'], loss: number): BestRow => ({
    ...{ id, kind, label: id, target: { model: id }, lambda: null, tried: 1, seconds: 1 },
    blocks: { tuning: null, choosing: blocks(loss), reporting: blocks(loss) },
  });
  const report = (merge: number, best: string): FindBestReport => ({
    texts: [{ name: 'a', kind: 'generated', tokens: { tuning: 640, choosing: 640, reporting: 640 } }],
    rows: [row('base', 'base', 2), row('a', 'contributor', 1), row('ties', 'method', merge)],
    ...{ best, course: [], lately: null, ended: 'done', left, kept: [2 - merge], overlap: null },
    ...{ measured: 3, reused: 0, seconds: 3 },
  });
  const good = bestText(report(0.5, 'ties'));
  expect(good).toMatch(
    /^ties is better than the base by 77\.69\u00a0±\u00a00\.00\u00a0% and than each contributor alone, on that part\.$/m,
  );
  expect(good).toContain('it keeps 150 % of a.');
  expect(good).not.toMatch(/worse/);
  const poor = bestText(report(2.109, 'ties'));
  expect(poor).toContain('It is worse than the base on the text of a.');
  expect(poor).toMatch(/^ties is worse than a alone by [\d.]+\u00a0±\u00a00\.00\u00a0%, on that part\.$/m);
  expect(poor).not.toContain('keeps');
  expect(bestText(report(1, 'ties'))).toContain('cannot be told apart from a alone, on that part.');
  expect(bestText(report(3, 'a'))).toContain(
    '* a: chosen on the choosing part, where no merge was better than it beyond the error.',
  );
});

test('a search that ran out of time says what it did not come to, and prints no number that is none', () => {
  const blocks = (loss: number, count: number) => [
    Array.from({ length: count }, () => ({ loss, tokens: 1 })),
  ];
  const row = (id: string, kind: BestRow['kind'], reporting: BestRow['blocks']['reporting']): BestRow => ({
    ...{ id, kind, label: id, target: { model: id }, lambda: null, tried: 3, seconds: 1 },
    blocks: { tuning: null, choosing: blocks(1, 4), reporting },
  });
  const tokens = { tuning: 0, choosing: 4, reporting: 0 };
  const report: FindBestReport = {
    texts: [{ name: 'a', kind: 'given', tokens }],
    rows: [row('base', 'base', blocks(1, 0)), row('ties', 'given', blocks(1, 0)), row('ram', 'method', null)],
    ...{ best: 'ties', course: [], lately: null, ended: 'budget', kept: [Number.NaN, 1 / 0, null] },
    ...{ left: { methods: 1, gram: 3, search: 1 }, overlap: null, measured: 9, reused: 0, seconds: 3 },
  };
  const said = plain(bestText(report));
  expect(said).not.toMatch(/NaN|Infinity|∞/);
  // what stands without an error, and what without a number, is explained
  expect(said).toMatch(/^±: 95 %.* Numbers without ± .*\n–: not measured there: /m);
  expect(said.split('\n').at(-1)).toBe(
    '2 merges tried at 6 settings in 3.0 s. The time was up after 2 merges, before 1 method, 3 Gram merges, and the search.',
  );
  expect(plain(bestText({ ...report, ended: 'done' }))).toMatch(/at 6 settings in 3\.0 s\.$/);
  const progress = report.rows.map(bestRowText);
  expect(progress[2]).toBe('ram: loss 1.0000 on the choosing part');
  expect(bestRowText(row('ram', 'method', blocks(2, 4)))).toBe('ram: loss 2.0000 on the reporting part');
  expect(progress.join()).not.toMatch(/NaN/);
});

test('a merge that was only compared on the choosing part has no number of the other, and is counted', () => {
  const blocks = (loss: number) => [Array.from({ length: 10 }, () => ({ loss: 64 * loss, tokens: 64 }))];
  const row = (id: string, loss: number, isReported = true): BestRow => ({
    ...{ id, kind: 'method', label: id, target: { model: id }, lambda: null, tried: 1, seconds: 1 },
    blocks: {
      ...{ tuning: blocks(loss - 0.1), choosing: blocks(loss) },
      reporting: isReported ? blocks(loss + 0.1) : null,
    },
  });
  const text = { name: 'a', kind: 'given', tokens: { tuning: 640, choosing: 640, reporting: 640 } } as const;
  // the winner was compared on more text, which is harder
  const ram = row('ram', 1);
  const blocksOfRam = { ...ram.blocks, choosing: [[...blocks(1)[0]!, ...blocks(3)[0]!]] };
  const rows = [{ ...ram, blocks: blocksOfRam }, row('karcher', 1.1), row('ties', 2, false)];
  const said = bestText({
    ...{ texts: [text], rows, best: 'ram' },
    ...{
      course: [],
      lately: null,
      ended: 'done',
      left,
      kept: [],
      overlap: null,
      measured: 3,
      reused: 0,
      seconds: 3,
    },
  });
  const lines = plain(said).split('\n');
  const numbers = (of: string) =>
    lines
      .find((line) => line.trim().startsWith(of))!
      .split(/ {2,}/)
      .slice(1);
  expect(lines[1]).toMatch(/merge +λ +tuned on +chosen on +perplexity/);
  expect(numbers('*  ram').slice(1, 4)).toEqual(['2.4596', '2.7183', '3.0042']);
  expect(numbers('ties').slice(1, 4)).toEqual(['6.6859', '7.3891', '–']);
  expect(said).toContain(
    'ram is the best of 2 merges, on that part. One more was compared on the choosing part alone.',
  );
});

test('of two texts the front is listed, the tuned number stands beside, and a search that fits its text is said to', () => {
  const blocks = (...texts: number[]) =>
    texts.map((loss) =>
      Array.from({ length: 10 }, (_, i) => ({ loss: 64 * (loss + 0.001 * (i % 3)), tokens: 64 })),
    );
  const row = (id: string, tuning: number[], held: number[], from?: string): BestRow => ({
    ...{ id, kind: 'method', label: id, target: { model: id }, lambda: null, tried: 1, seconds: 1 },
    ...(from !== undefined && { from }),
    blocks: { tuning: blocks(...tuning), choosing: blocks(...held), reporting: blocks(...held) },
  });
  const text = { kind: 'given', tokens: { tuning: 640, choosing: 640, reporting: 640 } } as const;
  const report: FindBestReport = {
    texts: ['tales', 'recipes'].map((name) => ({ ...text, name })),
    rows: [
      row('ties', [2, 2], [2, 2]),
      row('search', [1, 1], [1.99, 1.99], 'ties'),
      row('front 1', [1.5, 2.5], [1.5, 2.5], 'ties'),
    ],
    ...{ best: 'search', course: [], lately: null, ended: 'done', left, kept: [], overlap: null },
    ...{ measured: 3, reused: 0, seconds: 3 },
  };
  const lines = plain(bestText(report)).split('\n');
  expect(lines.find((line) => line.startsWith('*'))).toMatch(/search +2\.72\d+ +7\.32/);
  expect(lines).toContainEqual(
    expect.stringMatching(
      /^search fits the text it was tuned on: there perplexity changed by −63\.\d+ ± 0\.00 %, on other text by −1\.00 ± 0\.00 %\. /,
    ),
  );
  const front = lines.indexOf(
    'The front as it was on the choosing part, with the numbers of this one, from the best on tales to that on recipes:',
  );
  expect(lines.slice(front + 1, front + 4).map((line) => line.split(/ {2,}/))).toEqual([
    ['merge', 'tales', 'loss beside front 1', 'recipes', 'loss beside search'],
    ['front 1', expect.stringMatching(/^4\.48/), expect.stringMatching(/^12\.1/), '+0.5100 ± 0.0000'],
    ['search', expect.stringMatching(/^7\.3/), '+0.4900 ± 0.0000', expect.stringMatching(/^7\.3/), ''],
  ]);
});

test('R54: a stage or tensor with terminal escapes in its name moves nothing on the terminal', () => {
  let printed = '';
  const printer = progressPrinter({ isTTY: true, columns: 200, write: (text) => (printed += text) });
  printer.print({
    phase: 'merging \u001b[31m' as 'merging',
    item: 'a\u001b]0;title\u0007\r',
    tensorsDone: 1,
    tensors: 2,
    bytesDone: 0,
    bytes: 0,
    bytesPerSecond: 0,
    secondsLeft: null,
    stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  });
  expect(printed).toBe('\r\u001b[Kmerging \\u{1b}[31m · 1/2 tensors · a\\u{1b}]0;title\\u{7}\\u{d}');
});
