/** The four sets of models that merges are measured on: two pairs and a half-trained one of the reference folder, and the sample. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CalibrationSize } from '../src/calibration/calibration';
import { DEFAULT_PROTOCOL, type EvaluateProtocol } from '../src/evaluate/perplexity';
import { createTokenizer } from '../src/foreign/tokenizer';
import type { NodeModels } from './calibrate-in-node';

export interface ModelSet {
  name: string;
  /** Base, contributors and their parts by name; the base is `base`. */
  models: NodeModels;
  contributors: readonly string[];
  /** Size of the calibration text that every contributor generates. */
  calibration: CalibrationSize;
  protocol: EvaluateProtocol;
  /** Token ids of held-out text of each contributor's domain: to tune on, and to measure on. */
  texts(): { validation: number[]; test: number[] }[];
}

/** Ids of the pairs' texts that are tuned on, and as many behind them that are measured on. */
export const PAIR_IDS = 8500;
const SAMPLE_IDS = 4096;
const STORY_IDS = 1200;

/** @param reference folder that holds `golden/` and `data/` */
export function modelSets(reference: string): ModelSet[] {
  const real = join(reference, 'golden/real');
  const stories = join(reference, 'data/stories15m');
  const sample = resolve('public/samples');
  const pair = {
    models: {
      root: real,
      folders: {
        base: 'f32/base',
        shakespeare: 'f32/shakespeare',
        wiki: 'f32/wiki',
        'shakespeare-lora': 'shakespeare-lora',
        'wiki-rslora-dora': 'wiki-rslora-dora',
      },
    },
    calibration: { windows: 128, length: 256 },
    // every token of the cut once, as in the study
    protocol: { window: 256, stride: 255 },
    texts: () =>
      ['shakespeare_heldout', 'wikitext_test_60k'].map((text) => {
        const ids = idsOf(join(real, `eval/${text}.ids.u16`));
        return { validation: ids.slice(0, PAIR_IDS), test: ids.slice(PAIR_IDS, 2 * PAIR_IDS) };
      }),
  };
  const specialists = ['kitchen', 'harbour', 'workshop'];
  return [
    { name: 'pair F', contributors: ['shakespeare', 'wiki'], ...pair },
    { name: 'pair L', contributors: ['base+shakespeare-lora', 'base+wiki-rslora-dora'], ...pair },
    {
      name: 'sample',
      contributors: ['base+kitchen', 'base+harbour', 'workshop'],
      models: {
        root: sample,
        folders: Object.fromEntries(['base', ...specialists].map((name) => [name, name])),
      },
      calibration: { windows: 128, length: 256 },
      protocol: DEFAULT_PROTOCOL,
      texts: () => {
        const encode = encoderOf(join(sample, 'base'));
        return specialists.map((name) => ({
          validation: encode(readText(sample, `texts/${name}.calibration.txt`)).slice(0, SAMPLE_IDS),
          test: encode(readText(sample, `texts/${name}.eval.txt`)),
        }));
      },
    },
    {
      name: 'stories15M',
      contributors: ['shakespeare', 'base+bible-lora'],
      models: {
        root: stories,
        folders: { base: 'base', shakespeare: 'shakespeare', 'bible-lora': 'bible-lora' },
      },
      // a quarter of the usual: sixty times as large a model as the pairs'
      calibration: { windows: 32, length: 256 },
      protocol: { window: 256, stride: 255 },
      texts: () => {
        const encode = encoderOf(join(stories, 'base'));
        return ['shakespeare', 'bible'].map((name) => {
          const text = readText(stories, `texts/${name}.eval.txt`);
          const half = text.indexOf('\n', text.length / 2);
          return {
            validation: encode(text.slice(0, half)).slice(0, STORY_IDS),
            test: encode(text.slice(half + 1)),
          };
        });
      },
    },
  ];
}

function readText(...path: string[]): string {
  return readFileSync(join(...path), 'utf8');
}

/** Little-endian 16-bit token ids of a file. */
function idsOf(file: string): number[] {
  const bytes = readFileSync(file);
  return [...new Uint16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))];
}

/** Token ids of a text by the tokenizer of a model, with its special tokens. */
function encoderOf(folder: string): (text: string) => number[] {
  const tokenizer = createTokenizer(
    {
      tokenizer: readText(folder, 'tokenizer.json'),
      config: readText(folder, 'tokenizer_config.json'),
      hasSentencePiece: false,
    },
    folder,
  );
  return (text) => [...tokenizer.prefix, ...tokenizer.encode(text)];
}
