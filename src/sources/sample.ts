import readmeUrl from '/samples/README.md?url';
import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { type ByteSource, bufferSource, checkByteRange } from './byte-source';
import type { ModelFolder } from './model-folder';
import { fetchOk, readAll, retrying, type Transfer } from './transfer';

/**
 * The sample family that ships with the app: `samples/base`, `samples/kitchen`, `samples/harbour`,
 * `samples/workshop`. A file is fetched whole at its first read and stays in memory for the session.
 * @param samplesUrl where the family is served, with a slash at the end; beside the README, whose address Vite makes under whatever
 *   base path the app is served from, in the page and in a worker.
 */
export function sampleFolders(
  samplesUrl = new URL('.', new URL(readmeUrl, import.meta.url)).href,
  transfer: Transfer = {},
): ModelFolder[] {
  return [...SAMPLE_FILES].map(([path, files]) => ({
    path,
    origin: { kind: 'sample' },
    files: files.map(([file, bytes]) => {
      const url = `${samplesUrl}${path.slice('samples/'.length)}/${file}`;
      const source = sampleSource(url, `${path}/${file}`, bytes, transfer);
      return { path: file, byteLength: bytes, open: () => source };
    }),
  }));
}

/** The evaluation texts of the family by name: `common`, `kitchen`, `harbour`, `workshop`. */
export function sampleTexts(
  samplesUrl = new URL('.', new URL(readmeUrl, import.meta.url)).href,
  transfer: Transfer = {},
): Promise<{ name: string; text: string }[]> {
  const evaluation = SAMPLE_TEXTS.filter(([file]) => file.endsWith('.eval.txt'));
  return Promise.all(
    evaluation.map(async ([file]) => ({
      name: file.replace('.eval.txt', ''),
      text: await sampleText(file, samplesUrl, transfer),
    })),
  );
}

/** A text of the family by its file name, `kitchen.calibration.txt`. @throws AmalgamError what fetching throws */
export async function sampleText(
  file: string,
  samplesUrl = new URL('.', new URL(readmeUrl, import.meta.url)).href,
  transfer: Transfer = {},
): Promise<string> {
  const found = SAMPLE_TEXTS.find(([name]) => name === file);
  if (!found) throw new AmalgamError('NotFound', `There is no text ${file}.`, 'Add the file first.');
  const source = sampleSource(`${samplesUrl}texts/${file}`, `samples/texts/${file}`, found[1], transfer);
  return new TextDecoder('utf-8', { fatal: true }).decode(await source.read(0, found[1]));
}

/** One file: all readers share one fetch; a failed fetch is forgotten, so that the next read tries again. */
function sampleSource(url: string, name: string, byteLength: number, transfer: Transfer): ByteSource {
  let whole: Promise<ByteSource> | undefined;
  return {
    byteLength,
    async read(begin, end, signal) {
      checkByteRange(begin, end, byteLength, name);
      whole ??= fetchWhole(url, name, byteLength, transfer).catch((thrown: unknown) => {
        whole = undefined;
        throw thrown;
      });
      return (await whole).read(begin, end, signal);
    },
  };
}

async function fetchWhole(
  url: string,
  name: string,
  byteLength: number,
  transfer: Transfer,
): Promise<ByteSource> {
  const subject = { name, host: new URL(url).host };
  const bytes = await retrying(
    async (signal, received) =>
      readAll(await fetchOk(url, { headers: {} }, subject, transfer, signal), subject, byteLength, received),
    subject,
    transfer,
  );
  if (bytes.length !== byteLength) {
    throw new AmalgamError(
      'TransferInvalid',
      `${name} came with ${counted(bytes.length, 'byte')} instead of ${byteLength}.`,
      'The sample family was not installed whole beside the app. Build the app again.',
    );
  }
  return bufferSource(bytes, name);
}

/** The sample family: every file of every model with its size in bytes, checked against `public/samples` by a test. */
export const SAMPLE_FILES: ReadonlyMap<string, readonly (readonly [path: string, bytes: number])[]> = new Map(
  [
    [
      'samples/base',
      [
        ['config.json', 773],
        ['generation_config.json', 105],
        ['model.safetensors', 2_483_296],
        ['special_tokens_map.json', 48],
        ['tokenizer.json', 54_731],
        ['tokenizer_config.json', 244],
      ],
    ],
    [
      'samples/kitchen',
      [
        ['adapter_config.json', 1_167],
        ['adapter_model.safetensors', 459_128],
      ],
    ],
    [
      'samples/harbour',
      [
        ['adapter_config.json', 1_167],
        ['adapter_model.safetensors', 459_128],
      ],
    ],
    [
      'samples/workshop',
      [
        ['config.json', 773],
        ['generation_config.json', 105],
        ['model.safetensors', 2_483_296],
        ['special_tokens_map.json', 48],
        ['tokenizer.json', 54_731],
        ['tokenizer_config.json', 244],
      ],
    ],
  ],
);

/** The texts of the family, in `public/samples/texts`: held out for evaluation, and for calibration. */
export const SAMPLE_TEXTS: readonly (readonly [file: string, bytes: number])[] = [
  ['common.eval.txt', 20_053],
  ['common.calibration.txt', 60_284],
  ['kitchen.eval.txt', 20_283],
  ['kitchen.calibration.txt', 60_323],
  ['harbour.eval.txt', 20_010],
  ['harbour.calibration.txt', 60_816],
  ['workshop.eval.txt', 20_137],
  ['workshop.calibration.txt', 60_140],
];
