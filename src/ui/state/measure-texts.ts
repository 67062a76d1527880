/** Texts that models are measured on: the sample's, and those of files and datasets. */
import { AmalgamError, errorReport } from '../../errors';
import { textOfFile, utf8Text } from '../../formats/conversations';
import { textSha256 } from '../../formats/hashes';
import { formatBytes } from '../../formats/quantity';
import { bytesOf } from '../../platform';
import type { TextInput } from '../../reports/evaluate';
import type { TextPart } from '../../reports/find-best';
import { partsOf, QUICK_CHARACTERS, scoredText, type TextParts } from '../../reports/text-parts';
import { freeName } from './built-recipe';
import type { MeasureText } from './measure-state';
import { planNow } from './plan';
import { isOfSample } from './sample-texts';
import { editSlice, noticed, type Studio } from './studio';

/** Name in recipes for text that the model generates itself; no file has this name. */
const SELF = 'self';

/** Larger files are refused: a browser tab would have to hold text, tokens and losses at once. */
export const MAX_TEXT_BYTES = 20_000_000;

/** What of a text is tuned on, compared on and reported of: three parts, each as long as `quick` is elsewhere. */
export function searchedText({ text }: MeasureText, amount: 'quick' | 'full'): string {
  return scoredText(text, amount, 3 * QUICK_CHARACTERS);
}

const parts = new WeakMap<MeasureText, Partial<Record<'quick' | 'full', TextParts>>>();

/** The stretches of a text in a part; of a text that is too short to be cut, all of it. */
export function partStretches(
  text: MeasureText,
  amount: 'quick' | 'full',
  part: TextPart = 'reporting',
): readonly TextInput[] {
  const known = parts.get(text) ?? {};
  const made = known[amount] ?? partsOf(searchedText(text, amount), text.name);
  parts.set(text, { ...known, [amount]: made });
  return made[part][0]!;
}

/** SHA-256 in hex of what is read of a text, quick and full. */
export async function textHashes(text: string): Promise<{ quick: string; full: string }> {
  const full = await textSha256(text);
  const quick = scoredText(text, 'quick', 3 * QUICK_CHARACTERS);
  return { quick: quick.length === text.length ? full : await textSha256(quick), full };
}

/** Opens the sample texts, once. A failure is shown in the tab, which offers to try again. */
export async function openSampleTexts(studio: Studio): Promise<void> {
  const { opening } = studio.store.getState().measure;
  if (opening === 'opening' || opening === 'done') return;
  editSlice(studio, 'measure', { opening: 'opening', openError: null });
  const chosen = isOfSample(studio.store.getState());
  try {
    const opened = await Promise.all(
      (await studio.worker.sampleTexts()).map(
        async ({ name, text }): Promise<MeasureText> => ({
          id: `sample ${name}`,
          name,
          text,
          sha256: await textHashes(text),
          origin: 'sample',
          chosen,
        }),
      ),
    );
    editSlice(studio, 'measure', ({ texts }) => ({
      opening: 'done' as const,
      texts: [...opened, ...texts],
    }));
  } catch (thrown) {
    editSlice(studio, 'measure', { opening: 'failed', openError: errorReport(thrown) });
  }
}

/**
 * Adds a text under an id and a name that no other has, and makes it known to the engine, which may calibrate on it.
 *
 * @param chosen whether it is a column of the table
 * @returns the name
 */
export async function addText(studio: Studio, name: string, text: string, chosen = true): Promise<string> {
  const sha256 = await textHashes(text);
  const { texts } = studio.store.getState().measure;
  const own = texts.filter((t) => t.origin === 'own').map((t) => Number(t.id.split(' ')[1]));
  const unique = freeName(name, [SELF, ...texts.map((t) => t.name)]);
  const id = `own ${Math.max(0, ...own) + 1}`;
  const added: MeasureText = { id, name: unique, text, sha256, origin: 'own', chosen };
  editSlice(studio, 'measure', { texts: [...texts, added] });
  await studio.worker.addCalibrationText(unique, text);
  const { report } = studio.store.getState().plan;
  // it may be what the plan misses
  if (report?.problems.some(({ code }) => code === 'CalibrationUnknown')) await planNow(studio);
  return unique;
}

/** Adds text files; other files show an error and are left out. */
export async function addTextFiles(
  studio: Studio,
  files: readonly File[],
  take: (name: string, text: string) => Promise<void>,
): Promise<void> {
  for (const file of files) {
    await noticed(studio, async () => take(file.name, await readTextFile(file)));
  }
}

export function removeText(studio: Studio, id: string): void {
  editSlice(studio, 'measure', ({ texts }) => ({ texts: texts.filter((t) => t.id !== id) }));
}

export function chooseText(studio: Studio, id: string, chosen: boolean): void {
  editSlice(studio, 'measure', ({ texts }) => ({
    texts: texts.map((t) => (t.id === id ? { ...t, chosen } : t)),
  }));
}

async function readTextFile(file: File): Promise<string> {
  if (file.size > MAX_TEXT_BYTES) {
    throw new AmalgamError(
      'LimitExceeded',
      `${file.name} has ${formatBytes(file.size)}; the studio takes texts up to ${formatBytes(MAX_TEXT_BYTES)}.`,
      'Cut out a part of it: a few thousand words already tell models apart.',
    );
  }
  return textOfFile(file.name, utf8Text(await bytesOf(file), file.name));
}
