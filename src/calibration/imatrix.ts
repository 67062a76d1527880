/**
 * An importance matrix for GGUF: the mean square of what reaches every column of the merged model's linear layers, Σx²/n,
 * as llama.cpp's `llama-imatrix` measures it. It is the diagonal of the Gram matrices, of the output instead of its
 * contributors; stored, so that another type of the same output runs no model.
 */
import type { Backend } from '../backend/backend';
import type { Plan } from '../merge/plan/plan';
import { claimTensors, linearSites } from '../models/claim';
import type { ImatrixReport } from '../reports/importance';
import { openRecords, type RecordHeader } from '../store/masks';
import {
  type CalibrationMeter,
  type CalibrationSize,
  type CalibrationSource,
  calibrationHash,
  type OpenReader,
  readingOf,
} from './calibration';
import { eachLayerGrams } from './layer-grams';

export interface Imatrix {
  /** A weight for every column, by the merge's name of the tensor. */
  columns: ReadonlyMap<string, Float32Array<ArrayBuffer>>;
  report: ImatrixReport;
}

interface ImatrixOptions {
  plan: Plan;
  engine: Backend;
  /** Everything that determines the output's weights. */
  model: string;
  /** Text to measure on: of any kind, or the readings of the contributors. */
  text:
    | { source: CalibrationSource }
    | { hashes: readonly string[]; readings(): Promise<readonly (readonly number[])[]> };
  /** In words. */
  title: string;
  size: CalibrationSize;
  /** Opens the merge as a model that runs; nothing is written. */
  open(use: Parameters<OpenOutput>[0]): Promise<OpenReader>;
  signal: AbortSignal;
  progress: CalibrationMeter;
}

type OpenOutput = (use: { kind: 'write' } | { kind: 'pass'; rows: number }) => Promise<OpenReader>;

interface ImatrixHeader extends RecordHeader {
  tensors: string[];
  tokens: number;
}

/** Name of the merged model in progress. */
const OUTPUT = 'the merged model';

/**
 * The matrix of an output: from a record, or measured now.
 * @throws AmalgamError `NonFinite`, `TextTooShort`, `ContextTooLong`, `Canceled` and what running models throws
 */
export async function measureImatrix(options: ImatrixOptions): Promise<Imatrix> {
  const { text, size, engine, title } = options;
  const begun = performance.now();
  const read = 'source' in text ? [await calibrationHash(text.source, size)] : text.hashes;
  const folder = await openRecords(
    JSON.stringify(['imatrix', 1, options.model, read, engine.kind]),
    `Importance matrix on ${title}`,
  );
  const found = await folder.find<ImatrixHeader>('imatrix');
  if (found) {
    const columns = new Map<string, Float32Array<ArrayBuffer>>();
    for (const [i, tensor] of found.header.tensors.entries()) {
      const bytes = await found.read(i, 0, found.header.sections[i]!);
      columns.set(tensor, new Float32Array(bytes.buffer));
    }
    return { columns, report: { text: title, tokens: found.header.tokens, seconds: 0, reused: true } };
  }
  const sequences = 'source' in text ? await ownReading(options, text.source) : [...(await text.readings())];
  const columns = await meanSquares(options, sequences);
  const tokens = sequences.reduce((sum, ids) => sum + ids.length, 0);
  await folder.write<ImatrixHeader>(
    { name: 'imatrix', tensors: [...columns.keys()], tokens },
    [...columns.values()].map((weights) => new Uint8Array(weights.buffer)),
  );
  const seconds = (performance.now() - begun) / 1000;
  return { columns, report: { text: title, tokens, seconds, reused: false } };
}

async function ownReading(
  { size, open, signal, progress }: ImatrixOptions,
  source: CalibrationSource,
): Promise<number[][]> {
  const reader = await open({ kind: 'write' });
  try {
    let before = 0;
    if (source.kind === 'self') progress.begin('writing', size.windows * size.length);
    return await readingOf(source, size, reader, {
      use: 'calibration',
      signal,
      onProgress(done) {
        progress.advance(done - before, OUTPUT);
        before = done;
      },
    });
  } finally {
    reader.close();
  }
}

/** One pass over the text, layer by layer. */
async function meanSquares(
  { plan, engine, open, signal, progress }: ImatrixOptions,
  sequences: readonly (readonly number[])[],
): Promise<Map<string, Float32Array<ArrayBuffer>>> {
  const rows = sequences.reduce((sum, ids) => sum + ids.length, 0);
  const reader = await open({ kind: 'pass', rows });
  const columns = new Map<string, Float32Array<ArrayBuffer>>();
  try {
    const { runner } = reader;
    const { blocks } = runner.architecture;
    const byName = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
    const claimed = claimTensors(runner.architecture, byName);
    const sites = blocks.map(linearSites);
    progress.begin('calibrating', blocks.length + 1);
    await eachLayerGrams(
      {
        engine,
        passages: [{ runner, sequences }],
        form: 'diagonal',
        wanted: (layer) => new Set(sites[layer]!.map(({ site }) => site)),
        signal,
        onStep: () => progress.advance(1, OUTPUT),
      },
      async (layer, [grams]) => {
        for (const { site, linears } of sites[layer]!) {
          const gram = grams!.get(site)!;
          const squares = await gram.diagonal();
          const mean = Float32Array.from(squares, (sum) => sum / gram.tokens);
          for (const { weight } of linears) columns.set(claimed.get(weight)!, mean);
        }
      },
    );
  } finally {
    reader.close();
  }
  return columns;
}
