/**
 * The study behind docs/importance.md, again, in this engine: two fine-tunes of a real pretrained model, calibrated on
 * text of their domain or on text of their own, merged, and their perplexity on held-out text. Protocol and figures:
 * `reference/importance-study.md`. λ of the trimmed rows is the study's own; that our search finds the same is a test.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { fakeStorage } from '../../src/store/opfs.test.fake';
import { calibrateInNode, type NodeModels } from '../calibrate-in-node';
import { readText, real, reference } from './reference';

const corpora = join(reference, 'data/corpora');

/** From the first line end at or after `from` bytes on. */
function fromLine(bytes: Buffer, from: number): string {
  return bytes.subarray(bytes.indexOf(10, from) + 1).toString('utf8');
}

const shakespeare = readFileSync(join(corpora, 'tinyshakespeare.txt'));
const models: NodeModels = {
  root: real,
  folders: { base: 'f32/base', shakespeare: 'f32/shakespeare', wiki: 'f32/wiki' },
  texts: {
    shakespeare: shakespeare.subarray(0, 1_003_854).toString('utf8'),
    wiki: readText(corpora, 'wikitext-2_valid.txt'),
  },
};

/** Token ids as the study has them, by the file alone without the class that transformers 5 splits by, BOS in front. */
async function idsOf(text: string): Promise<number[]> {
  const { createTokenizer } = await import('../../src/foreign/tokenizer');
  const tokenizer = readText(real, 'base/tokenizer.json');
  const { encode } = createTokenizer({ tokenizer, hasSentencePiece: false }, 'base');
  return [1, ...encode(text)];
}

interface Row {
  name: string;
  method: string;
  parameters: string;
  density?: number;
  /** Geometric mean of both perplexities in the study. */
  study: number;
}

const OWN = ['shakespeare', 'wiki'];
const SELF = ['self', 'self'];

const ROWS: Row[] = [
  {
    name: 'TIES, magnitude, ρ 0.2',
    method: 'ties',
    density: 0.2,
    parameters: 'normalize: true, lambda: 1',
    study: 40.48,
  },
  {
    name: 'TIES, wanda, ρ 0.2',
    method: 'ties',
    density: 0.2,
    parameters: 'normalize: true, lambda: 1, selector: importance, compensation: off',
    study: 39.61,
  },
  {
    name: 'TIES, wanda + compensation, ρ 0.2',
    method: 'ties',
    density: 0.2,
    parameters: 'normalize: true, lambda: 0.9, selector: importance',
    study: 36.62,
  },
  {
    name: 'task arithmetic, λ tuned',
    method: 'task_arithmetic',
    parameters: 'lambda: 0.6',
    study: 27.8,
  },
  {
    name: 'wanda + compensation, Gram merge, ρ 0.2, embedding and norms averaged',
    method: 'gram',
    density: 0.2,
    parameters: 'lambda: 1.4, embedding: average',
    study: 24.86,
  },
  {
    name: 'Gram merge, embedding averaged',
    method: 'gram',
    parameters: 'lambda: 1.2, embedding: average',
    study: 21.96,
  },
  { name: 'Gram merge', method: 'gram', parameters: 'lambda: 1.2', study: 20.85 },
];

function recipe({ method, parameters, density }: Row, calibration: readonly string[]): string {
  const weight = method === 'gram' ? '' : 'weight: 1, ';
  const model = (name: string, text: string) =>
    `  - model: ${name}\n    parameters: {${weight}density: ${density ?? 1}, calibration: ${text}}\n`;
  return `merge_method: ${method}\nbase_model: base\nmodels:\n${model('shakespeare', calibration[0]!)}${model('wiki', calibration[1]!)}parameters: {${parameters}}\n`;
}

let test: { shakespeare: number[]; wiki: number[] };
const measured = new Map<string, number>();

async function geometricMean(row: Row, calibration: readonly string[]): Promise<number> {
  const merge = await calibrateInNode(recipe(row, calibration), models);
  const a = await merge.perplexity(test.shakespeare);
  const b = await merge.perplexity(test.wiki);
  return Math.sqrt(a * b);
}

beforeAll(async () => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
  test = {
    shakespeare: await idsOf(fromLine(shakespeare, shakespeare.length - 60_000)),
    wiki: await idsOf(readText(real, 'eval/wikitext_test_60k.txt')),
  };
});

describe('shakespeare + wiki, calibrated on 128 × 256 tokens of their domains', () => {
  it('the texts are those of the study', () => {
    expect([test.shakespeare.length, test.wiki.length]).toEqual([37_830, 37_006]);
  });

  it.each(ROWS)(
    '$name',
    async (row) => {
      const ours = await geometricMean(row, OWN);
      measured.set(row.name, ours);
      console.log(`${row.name}: ${ours.toFixed(2)}, study ${row.study}`);
      expect(Math.abs(ours / row.study - 1)).toBeLessThan(0.03);
    },
    1_800_000,
  );

  it('the order is that of the study', () => {
    const inOrder = ROWS.map(({ name }) => measured.get(name));
    expect(inOrder).toEqual([...inOrder].sort((a, b) => b! - a!));
  });
});

describe('calibrated on text the models wrote themselves', () => {
  it.each([ROWS[2]!, ROWS[5]!])(
    '$name within 3 % of their domains',
    async (row) => {
      const ours = await geometricMean(row, SELF);
      console.log(`${row.name}, self-written: ${ours.toFixed(2)}`);
      expect(Math.abs(ours / measured.get(row.name)! - 1)).toBeLessThan(0.03);
    },
    1_800_000,
  );

  it.each([
    ['task_arithmetic', 0.6],
    ['gram', 1.2],
  ])(
    'λ of %s is %d, as on held-out text',
    async (method, study) => {
      const text = recipe({ name: method, method, parameters: 'lambda: auto', study: 0 }, SELF);
      const { report } = await calibrateInNode(text, models);
      const curve = report.lambda!.curve.map((p) => `${p.lambda} ${p.perplexity.toFixed(2)}`);
      console.log(`${method}: λ ${report.lambda!.chosen} from ${curve.join(', ')}`);
      expect(report.lambda!.chosen).toBe(study);
    },
    1_800_000,
  );
});
