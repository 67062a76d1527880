import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { noWebGpu } from '../backend/gpu/adapter';
import { errorReport } from '../errors';
import { openerOf, recipeOf, tinyModel } from '../inputs/memory-models.test.support';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import type { PlanReport } from '../reports/plan';
import { openTask, shippedTasks } from '../tasks/shipped';
import { engineOptions, flagOf, flagsOf, optionValue, type Place } from './arguments';
import { helpText, parseCommand, USAGE } from './command';
import { isAccepted } from './job';
import { checkReportPlace, writeWhole } from './report-file';
import { VERBS } from './verbs';

const isLinux = process.platform === 'linux';
/** What a verb does not begin without. */
const NEEDED = { text: 'file', prompt: 'x' };

const refused = (args: string[]) => {
  try {
    parseCommand(args);
  } catch (thrown) {
    return thrown;
  }
  throw new Error('the arguments were taken');
};

describe('parseCommand', () => {
  test('plan', () => {
    expect(parseCommand(['plan', 'r.yml'])).toEqual({
      verb: 'plan',
      parsed: { subjects: ['r.yml'], options: { json: false, strict: false }, given: new Set() },
    });
    expect(parseCommand(['plan', '--json', 'r.yml', '--hub', 'http://127.0.0.1:1/']).parsed).toMatchObject({
      subjects: ['r.yml'],
      options: { json: true, hub: 'http://127.0.0.1:1/' },
    });
  });

  test('merge', () => {
    const off = {
      prepare: false,
      recommended: false,
      adapter: false,
      ggufOnly: false,
      private: false,
      strict: false,
    };
    expect(parseCommand(['merge', 'r.yml', '--out', 'o']).parsed?.options).toEqual({
      ...{ out: 'o', engine: 'auto', resume: false, stream: false, budget: 120, seed: 0, ...off },
    });
    const more = ['--report', 'x.json', '--resume', '--gguf', 'Q8_0', '--gguf-only'];
    const typed = parseCommand(['merge', '--out=o', '--engine=cpu', ...more, 'r.yml']);
    expect(typed.parsed).toMatchObject({
      subjects: ['r.yml'],
      options: {
        ...{ out: 'o', engine: 'cpu', report: 'x.json', resume: true, gguf: 'Q8_0', ggufOnly: true },
      },
    });
  });

  test('a number with a unit is read by it, in every verb; what is none is refused with how it is written', () => {
    const units = { bytes: ['20MB', 20_000_000, '20s'], seconds: ['2.5m', 150, '2MB'] } as const;
    const found = VERBS.flatMap(({ name: verb, options }) =>
      Object.entries(options).flatMap(([name, option]) =>
        'unit' in option && option.unit ? [{ verb, name, option, unit: option.unit }] : [],
      ),
    );
    expect(found.map(({ verb, name }) => `${verb} ${name}`)).toEqual(
      expect.arrayContaining(['search budget', 'merge budget', 'convert shardBytes', 'lora budget']),
    );
    for (const { verb, name, option, unit } of found) {
      const flag = `--${flagOf(name, option)}`;
      const [text, value, wrong] = units[unit];
      expect(optionValue(flag.slice(2), option, text)).toBe(value);
      const message = expect.stringMatching(new RegExp(`^${flag} is ${wrong}; it is a .*, or such as \\d`));
      expect(refused([verb, 'a', flag, wrong])).toMatchObject({ code: 'Usage', message });
    }
  });

  test('a negative number is a value, not another flag', () => {
    for (const args of [['--top-p', '-0.5'], ['--top-p=-0.5']])
      expect(refused(['generate', 'm', '--prompt', 'x', ...args])).toMatchObject({
        code: 'Usage',
        message: expect.stringMatching(/^--top-p is -0.5; it is /),
      });
  });

  test('help is help wherever it stands', () => {
    for (const args of [['--help'], ['help']]) expect(parseCommand(args)).toEqual({ verb: 'help' });
    for (const args of [
      ['merge', '-h'],
      ['help', 'merge'],
    ]) {
      expect(parseCommand(args)).toEqual({ verb: 'help', about: 'merge' });
    }
    // two open no model
    for (const { name, options } of VERBS.filter(({ name }) => !['join', 'mcp'].includes(name)))
      expect(options, name).toHaveProperty('hub');
    expect(helpText('evaluate')).toMatch(/--text FILE.*--task NAME.*model-index.*side\s+by\s+side/s);
    expect(helpText('search')).toMatch(
      /--text FILE.*--task NAME.*another\s+--out.*goes\s+on\s+from\s+there/s,
    );
    expect(helpText('collapse')).toMatch(/--similarity 0.75.*--measure/s);
    expect(() => helpText('frob')).toThrow('There is no command frob.');
    expect(helpText('plan')).not.toContain('merge <recipe.yml>');
    expect(USAGE).toMatch(/plan <model>.*merge <recipe.yml>\s+\(--out DIR\s+\| --prepare\)/s);
  });

  test.each(VERBS)(
    'every flag that the usage of $name names is an option with help',
    ({ name, usage, options }) => {
      const lines = helpText(name).slice(usage.length);
      for (const [flag] of usage.matchAll(/--[a-z][a-z-]*/g))
        expect(lines).toMatch(new RegExp(`^ +${flag}\\b`, 'm'));
      for (const { help } of Object.values(options)) expect(help).toMatch(/^.{8,}\.$/);
    },
  );

  test.each([
    [[], 'The command is missing'],
    [
      ['levitate', 'm'],
      'There is no command levitate. Commands: plan, merge, join, verify, evaluate, generate, chat, compare, lora, collapse',
    ],
    [['plan'], 'plan needs <model>.'],
    [['plan', 'a.yml', 'b.yml'], 'b.yml is too much'],
    [['evaluate', 'm', '--text', 'a', '--text', 'b'], '--text is given 2 times, and takes one value.'],
    [['plan', 'a.yml', '--out', 'x'], 'plan has no option --out.'],
    [['merge', 'a.yml'], 'merge needs exactly one of --out and --prepare.'],
    [['merge', 'a.yml', '--out', ''], 'merge needs exactly one of --out and --prepare.'],
    [['merge', 'a.yml', '--out'], '--out needs a value.'],
    [
      ['merge', 'a.yml', '--out', 'o', '--engine', 'quantum'],
      '--engine is quantum; it is one of auto, webgpu, cpu.',
    ],
    [['merge', 'a.yml', '--out', 'o', '--gguf-only'], '--gguf-only belongs to --gguf '],
    [['merge', 'a.yml', '--out', 'o', '--gguf', 'Q9'], '--gguf is Q9; it is one of F32, F16'],
    [['merge', 'a.yml', '--out', 'o', '--private'], '--private belongs to --push owner/name.'],
    [['merge', 'a.yml', '--out', 'o', '--seed', '1'], '--seed belongs to --recommended.'],
    [['search', 'a.yml', '--fewshot', '1'], '--fewshot belongs to --task NAME.'],
    [['search', 'a.yml', '--task', 'piqa', '--text', 'a'], 'not by both'],
    [['verify', 'm', '--hashes', '--recipe', 'r.yml'], 'it takes no --recipe'],
    [['plan', 'a.yml', '--hub', 'huggingface.co'], '--hub is huggingface.co'],
    [['plan', 'a.yml', '--hub', 'file:///etc'], '--hub is file:///etc'],
  ])('%j is refused in words', (args, words) => {
    expect(refused(args)).toMatchObject({ code: 'Usage', message: expect.stringContaining(words) });
  });

  test('the engine that is there without a graphics adapter is named as it is typed', () => {
    const [cpu] = engineOptions.engine.values.filter((engine) => engine === 'cpu');
    expect(noWebGpu('None.').hint).toContain(`--engine ${cpu}`);
  });

  test('a name with one letter too many is answered with the one that was meant: options, commands, methods, tasks', async () => {
    const doubled = (name: string) => name + name.at(-1);
    for (const { name, options } of VERBS)
      for (const flag of flagsOf(options).filter((flag) => flag.length > 3))
        expect(refused([name, doubled(flag)])).toMatchObject({
          ...{ code: 'Usage', message: `${name} has no option ${doubled(flag)}; did you mean ${flag}?` },
        });
    expect(refused(['plan', 'm', '--strict=1'])).toMatchObject({ message: '--strict takes no value.' });
    const verbs = VERBS.map(({ name }) => name);
    for (const name of [...verbs, 'completion'])
      expect(refused([doubled(name)])).toMatchObject({
        message: expect.stringMatching(
          new RegExp(
            `no command ${doubled(name)}; did you mean ${name}\\? .*${verbs.at(-1)} and completion\\.$`,
          ),
        ),
      });
    for (const name of methodById.keys()) {
      const recipe = { ...recipeOf(['m']), mergeMethod: doubled(name) };
      const { problems } = await makePlan(recipe, openerOf(tinyModel('m')), methodById);
      expect(problems[0]!.message).toMatch(new RegExp(`"; did you mean ${name}\\?$`));
    }
    for (const { name, subsets } of shippedTasks()) {
      const whole = subsets[0] === undefined ? name : `${name}_${subsets[0]}`;
      expect(() => openTask({ name: doubled(whole) })).toThrow(`; did you mean ${whole}?`);
      expect(helpText('evaluate')).toMatch(new RegExp(`NAME is.*\\b${whole}\\b`, 's'));
    }
  });

  test('evaluate takes several models where it is about tasks', () => {
    const typed = 'evaluate a b.yml --task hellaswag,piqa --task=own.jsonl --limit 200 --fewshot 0';
    expect(parseCommand(typed.split(' ')).parsed).toMatchObject({
      subjects: ['a', 'b.yml'],
      options: {
        ...{ task: ['hellaswag', 'piqa', 'own.jsonl'], limit: 200, fewshot: 0, fewshotSeed: 1234 },
        engine: 'auto',
      },
    });
  });

  test('evaluate and generate read their options, with the protocol of the reports as default', () => {
    const dataset = 'o/n@main:data/a.parquet:text';
    expect(parseCommand(['evaluate', 'm', '--dataset', dataset, '--rows', '50']).parsed?.options).toEqual({
      ...{ dataset, rows: 50, characters: 200_000, task: [], fewshotSeed: 1234, engine: 'auto' },
      ...{ window: 256, stride: 128, perToken: false, weights: 'auto' },
    });
    expect(
      parseCommand(['evaluate', 'base+lora', '--text', 'a.txt', '--stride', '64', '--per-token']).parsed,
    ).toMatchObject({
      subjects: ['base+lora'],
      options: { text: 'a.txt', window: 256, stride: 64, perToken: true, engine: 'auto' },
    });
    expect(parseCommand(['evaluate', 'a.yml', 'b.yml', 'm', '--text', 'a.txt']).parsed).toMatchObject({
      subjects: ['a.yml', 'b.yml', 'm'],
    });
    const writing = ['generate', 'm', '--prompt', 'Once', '--temperature', '0.4', '--engine', 'cpu'];
    expect(parseCommand(writing).parsed).toMatchObject({
      subjects: ['m'],
      options: {
        ...{ engine: 'cpu', prompt: 'Once', chat: false, maxTokens: 64, temperature: 0.4, topP: 1, seed: 0 },
      },
    });
  });

  test.each([
    [['evaluate', 'm'], /exactly one of --text, --tokens, --dataset and --task/],
    [['evaluate', 'm', '--task', ','], /exactly one of .* --task/],
    [['evaluate', '--task', 'piqa'], /evaluate needs <model>/],
    [['evaluate', 'm', '--task', 'piqa', '--limit', '0'], /--limit is 0/],
    [['evaluate', 'm', '--task', 'piqa', '--sample-seed', '3'], /--sample-seed belongs to --limit/],
    [['evaluate', 'm', '--task', 'piqa', '--text', 'a'], /exactly one of --text.* --task/],
    [['evaluate', 'm', '--task', 'piqa', '--window', '9'], /--window is for perplexity/],
    [['evaluate', 'm', '--dataset', 'owner/name'], /\[@revision\]:path/],
    [['evaluate', 'm', '--text', 'a', '--rows', '3'], /--rows belongs to --dataset/],
    [['evaluate', 'm', '--text', 'a', '--tokens', 'b'], /exactly one of/],
    [['evaluate', 'm', '--text', 'a', '--window', '1'], /--window is 1/],
    [['evaluate', 'm', 'n', '--text', 'a', '--per-token'], /for one model/],
    [['generate', 'm'], /--prompt/],
    [['generate', 'm', '--prompt', 'x', '--max-tokens', 'many'], /--max-tokens is many/],
  ])('%j is refused in words', (args, words) => {
    expect(() => parseCommand(args)).toThrow(words);
  });
});

test('a name without effect is a warning, and a mistake where it is asked for', async () => {
  const open = openerOf(tinyModel('base'), tinyModel('m'));
  for (const part of [{ parameters: { lambada: 1 } }, { ignored: { out_dtyp: 'float16' } }, {}]) {
    const { problems } = await makePlan({ ...recipeOf(['m']), ...part }, open, methodById);
    const report = { clean: true, problems } as PlanReport;
    expect(isAccepted(report, false)).toBe(true);
    expect(isAccepted(report, true)).toBe(Object.keys(part).length === 0);
  }
});

test('R61: a report takes a new name only, and is whole under it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'amalgam-report-'));
  try {
    const file = join(root, 'report.json');
    await checkReportPlace(file);
    await writeWhole(file, '{}');
    expect(await readdir(root)).toEqual(['report.json']);
    await expect(checkReportPlace(file)).rejects.toMatchObject({
      code: 'Usage',
      message: expect.stringContaining('already exists'),
      hint: expect.stringContaining('--report'),
    });
    await expect(checkReportPlace(file, 'out')).rejects.toMatchObject({
      hint: expect.stringContaining('--out'),
    });
    await writeFile(join(root, 'other'), '');
    await expect(checkReportPlace(join(root, 'other', 'x.json'))).rejects.toMatchObject({ code: 'Usage' });
  } finally {
    await rm(root, { recursive: true });
  }
});

test('a destination that cannot be made is said in words with the next step, by every verb that writes one', async () => {
  const root = await mkdtemp(join(tmpdir(), 'amalgam-nowhere-'));
  try {
    const file = join(root, 'file');
    const expert = (name: string) => `{source_model: ${name}, positive_prompts: [${name}]}`;
    const experts = `experts: [${expert('a')}, ${expert('b')}]`;
    await writeFile(
      join(root, 'recipe'),
      `base_model: a\nmerge_method: linear\nmodels: [{model: a}]\n${experts}`,
    );
    await writeFile(file, 'text');
    const place: Place = {
      ...{ workingFolder: root, undo: [], say: () => undefined, write: async () => undefined },
    };
    const tried: string[] = [];
    for (const verb of VERBS) {
      for (const flag of ['out', 'report'].filter((name) => name in verb.options)) {
        for (const name of [join(file, 'x'), join(root, 'x'.repeat(300)), ...(isLinux ? ['/proc/x'] : [])]) {
          const subjects = verb.subjects.map((subject) => (subject.includes('yml') ? 'recipe' : 'a'));
          const needed = Object.entries(NEEDED).flatMap(([option, value]) =>
            option in verb.options ? [`--${option}`, value] : [],
          );
          const others = flag === 'report' && 'out' in verb.options ? ['--out', 'new'] : [];
          const parsed = verb.parse([...subjects, `--${flag}`, name, ...needed, ...others]);
          const error = errorReport(await Promise.resolve(verb.run(parsed, place)).catch((e: unknown) => e));
          const what = `${verb.name} --${flag} ${name.slice(-12)}: ${error.message} ${error.hint}`;
          expect(['DestinationFailed', 'Usage'], what).toContain(error.code);
          expect(error.message, what).toContain(name);
          expect(`${error.message} ${error.hint}`, what).not.toMatch(/\bE[A-Z]{3,}\b|Error:|errno/);
          expect(error.hint, what).not.toBe('');
          tried.push(`${verb.name} ${flag}`);
        }
      }
    }
    expect(new Set(tried).size).toBeGreaterThan(14);
    expect((await readdir(root)).sort()).toEqual(['file', 'recipe']);
  } finally {
    await rm(root, { recursive: true });
  }
});
