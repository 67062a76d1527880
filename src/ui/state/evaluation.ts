/** Actions of the Evaluate tab: the texts that models are measured on, and what earlier visits measured. */

import { AmalgamError, errorReport } from '../../errors';
import { textOfFile } from '../../formats/conversations';
import { formatBytes } from '../../formats/quantity';
import { bytesOf } from '../../platform';
import { forgetOutcomes, keptOutcomes } from '../local/saved-evaluations';
import type { EvaluationSlice, EvaluationText } from './evaluation-state';
import { freeName, MAX_TEXT_BYTES, textHashes } from './evaluation-texts';
import { planNow } from './plan';
import { isOfSample } from './sample-texts';
import { notifyError, type Studio } from './studio';

export function editEvaluation(studio: Studio, change: Partial<EvaluationSlice>): void {
  studio.store.setState((s) => ({ evaluation: { ...s.evaluation, ...change } }));
}

/** Opens the sample texts and what earlier visits measured, once. A failure is shown in the tab, which offers to try again. */
export async function openSampleTexts(studio: Studio): Promise<void> {
  const { opening } = studio.store.getState().evaluation;
  if (opening === 'opening' || opening === 'done') return;
  editEvaluation(studio, { opening: 'opening', openError: null });
  const chosen = isOfSample(studio.store.getState());
  try {
    const opened = await Promise.all(
      (await studio.worker.sampleTexts()).map(
        async ({ name, text }): Promise<EvaluationText> => ({
          id: `sample ${name}`,
          name,
          text,
          sha256: await textHashes(text),
          origin: 'sample',
          chosen,
        }),
      ),
    );
    await recallOutcomes(studio);
    studio.store.setState(({ evaluation: e }) => ({
      evaluation: { ...e, opening: 'done', texts: [...opened, ...e.texts] },
    }));
  } catch (thrown) {
    editEvaluation(studio, { opening: 'failed', openError: errorReport(thrown) });
  }
}

/** Numbers of earlier visits come back; none without storage. */
async function recallOutcomes(studio: Studio): Promise<void> {
  const { version } = await studio.worker.info();
  const kept = await keptOutcomes(version).catch(() => []);
  studio.store.setState(({ evaluation: e }) => {
    const earlier = kept.map(({ key, report, bytes, at }) => [key, { report, bytes, earlier: at }] as const);
    return { evaluation: { ...e, outcomes: new Map([...earlier, ...e.outcomes]) } };
  });
}

/** Forgets what earlier visits measured; what this one measured stays in the table. */
export async function forgetEarlier(studio: Studio): Promise<void> {
  studio.store.setState(({ evaluation: e }) => {
    const own = [...e.outcomes].filter(([, o]) => !('report' in o && o.earlier !== undefined));
    return { evaluation: { ...e, outcomes: new Map(own) } };
  });
  try {
    await forgetOutcomes();
  } catch (thrown) {
    notifyError(studio, thrown);
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
  const taken = studio.store.getState().evaluation.texts.map((t) => t.name);
  const unique = freeName(name, taken);
  studio.store.setState(({ evaluation: e }) => {
    const own = e.texts.filter((t) => t.origin === 'own').map((t) => Number(t.id.split(' ')[1]));
    const id = `own ${Math.max(0, ...own) + 1}`;
    const added: EvaluationText = { id, name: unique, text, sha256, origin: 'own', chosen };
    return { evaluation: { ...e, texts: [...e.texts, added] } };
  });
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
    try {
      await take(file.name, await readTextFile(file));
    } catch (thrown) {
      notifyError(studio, thrown);
    }
  }
}

export function removeText(studio: Studio, id: string): void {
  const { texts } = studio.store.getState().evaluation;
  editEvaluation(studio, { texts: texts.filter((t) => t.id !== id) });
}

export function chooseText(studio: Studio, id: string, chosen: boolean): void {
  const { texts } = studio.store.getState().evaluation;
  editEvaluation(studio, { texts: texts.map((t) => (t.id === id ? { ...t, chosen } : t)) });
}

async function readTextFile(file: File): Promise<string> {
  if (file.size > MAX_TEXT_BYTES) {
    throw new AmalgamError(
      'LimitExceeded',
      `${file.name} has ${formatBytes(file.size)}; the studio takes texts up to ${formatBytes(MAX_TEXT_BYTES)}.`,
      'Cut out a part of it: a few thousand words already tell models apart.',
    );
  }
  const bytes = await bytesOf(file);
  try {
    return textOfFile(file.name, new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new AmalgamError(
      'TextEmpty',
      `${file.name} is not a UTF-8 text.`,
      'Save it as UTF-8 text, or choose a .txt or .jsonl file.',
      { cause: thrown },
    );
  }
}
