/** Actions of the Compare tab: choosing a pair, comparing it, extracting a LoRA from it. */

import { errorReport } from '../../errors';
import { extractOptions, rankOptions } from '../../tools/extract/options';
import { copyOf } from '../../formats/recipe';
import type { CompareProgress, ExtractLoraRequest, RankChoice } from '../../tools/difference/report';
import { isInRange } from '../../reports/option';
import { scoredText } from '../state/evaluation-texts';
import { ended, runTool, whyNoTool } from '../state/job';
import { tensorProgress } from '../state/job-state';
import { fileNameOf } from '../state/model-choices';
import { chooseDestination } from '../state/run';
import { savedOutput, whyNotSaved } from '../state/saved-output';
import { notifyError, type Studio } from '../state/studio';
import type { Comparison, ComparisonSlice, ExtractChoices, Extraction } from './compare-state';
import { pairOf } from '../state/pair';

export function editComparison(studio: Studio, change: Partial<ComparisonSlice>): void {
  studio.store.setState((s) => ({ comparison: { ...s.comparison, ...change } }));
}

export function editChoices(studio: Studio, change: Partial<ExtractChoices>): void {
  studio.store.setState(({ comparison: c }) => ({
    comparison: { ...c, choices: { ...c.choices, ...change } },
  }));
}

/** The other way round. */
export function swapPair(studio: Studio): void {
  const { base, finetuned } = pairOf(studio.store.getState());
  editComparison(studio, { base: finetuned, finetuned: base });
}

/** Compares the chosen pair and keeps the report's files where the person wants them. Never rejects. */
export async function compare(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const { base, finetuned } = pairOf(state);
  if (base === null || finetuned === null || whyNoTool(state) !== null) return;
  const { threshold, top, spectra, timeEngines } = state.comparison;
  // without storage there is still a comparison, only no files
  const keeps = whyNotSaved(state) === null;
  const started: Comparison = {
    ...{ base, finetuned, threshold, status: 'running', planned: [], tensors: [] },
    ...{ report: null, saved: null, error: null },
  };
  try {
    const destination = keeps
      ? await chooseDestination(studio, fileNameOf('compare', base, finetuned))
      : null;
    if (keeps && destination === null) return;
    editComparison(studio, { found: started });
    void planRows(studio, base);
    const outcome = await runTool(
      studio,
      'comparison',
      (onProgress) =>
        studio.worker.compare(
          {
            ...{ base, finetuned, threshold, top, timeEngines, loraAnalysis: spectra },
            engine: state.engine.choice,
            ...(destination ? { destination } : {}),
          },
          onProgress,
        ),
      tensorProgress,
      ({ finished }: CompareProgress) => {
        if (finished.length > 0) editFound(studio, (c) => ({ ...c, tensors: [...c.tensors, ...finished] }));
      },
    );
    editFound(studio, (c) => {
      if (!('value' in outcome)) return { ...c, ...ended(outcome) };
      const { value: report } = outcome;
      const files = report.files.map((name) => ({ name }));
      const saved = destination && files.length > 0 ? savedOutput(destination, files) : null;
      return { ...c, ...ended(outcome), tensors: report.tensors, saved };
    });
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}

/** Rows and columns of the chart, before anything is measured: the tensors of the base. */
async function planRows(studio: Studio, base: string): Promise<void> {
  try {
    const { tensors } = await studio.worker.plan(copyOf(base));
    editFound(studio, (c) => (c.base === base ? { ...c, planned: tensors } : c));
  } catch {
    // the comparison itself says what is wrong with the base; without a plan the rows come as they are measured
  }
}

function editFound(studio: Studio, edit: (found: Comparison) => Comparison): void {
  const { found } = studio.store.getState().comparison;
  if (found) editComparison(studio, { found: edit(found) });
}

/** Extracts a LoRA from the chosen pair. Never rejects. */
export async function extract(studio: Studio): Promise<void> {
  const state = studio.store.getState();
  const { base, finetuned } = pairOf(state);
  const { choices } = state.comparison;
  if (base === null || finetuned === null) return;
  if (whyNoTool(state) !== null || whyNotSaved(state) !== null || choicesProblem(choices) !== null) return;
  const text = state.evaluation.texts.find((t) => t.id === choices.textId)?.text;
  const request: Omit<ExtractLoraRequest, 'destination'> = {
    ...{ base, finetuned, engine: state.engine.choice, rank: rankChoice(choices), maxRank: choices.maxRank },
    include: moduleParts(choices.include),
    exclude: moduleParts(choices.exclude),
    embeddings: choices.embeddings,
    vectors: choices.vectors,
    dtype: choices.dtype,
    ...(text === undefined ? {} : { evaluation: { text: scoredText(text, state.evaluation.amount) } }),
  };
  const started: Extraction = { base, finetuned, status: 'running', report: null, saved: null, error: null };
  try {
    const destination = await chooseDestination(studio, fileNameOf('lora', finetuned));
    if (!destination) return;
    editComparison(studio, { extraction: started });
    const outcome = await runTool(
      studio,
      'extraction',
      (onProgress) => studio.worker.extractLora({ ...request, destination }, onProgress),
      tensorProgress,
    );
    if (!('value' in outcome))
      return editComparison(studio, { extraction: { ...started, ...ended(outcome) } });
    const { value: report } = outcome;
    const files = report.files.map(({ file, bytes, hash }) => ({
      ...{ name: file, bytes },
      ...(hash === undefined ? {} : { hash }),
    }));
    const saved = savedOutput(destination, files);
    editComparison(studio, { extraction: { ...started, ...ended(outcome), saved } });
  } catch (thrown) {
    editComparison(studio, { extraction: { ...started, status: 'failed', error: errorReport(thrown) } });
  }
}

function rankChoice({ by, rank, energy, cutoff, megabytes }: ExtractChoices): RankChoice {
  switch (by) {
    case 'rank':
      return { kind: 'rank', rank };
    case 'energy':
      return { kind: 'energy', share: energy };
    case 'cutoff':
      return { kind: 'cutoff', ratio: cutoff };
    case 'bytes':
      return { kind: 'bytes', bytes: Math.round(megabytes * 1e6) };
  }
}

/** Why nothing can be extracted with these choices, or null. */
export function choicesProblem({
  by,
  rank,
  energy,
  cutoff,
  megabytes,
  maxRank,
}: ExtractChoices): string | null {
  if (by === 'rank') {
    return isInRange(rankOptions.rank, rank) ? null : 'The rank is a whole number from 1.';
  }
  if (!isInRange(extractOptions.maxRank, maxRank)) return 'The largest rank is a whole number from 1.';
  if (by === 'energy')
    return isInRange(rankOptions.energy, energy) ? null : 'The energy is above 0 and at most 1.';
  if (by === 'cutoff')
    return isInRange(rankOptions.cutoff, cutoff) ? null : 'The cutoff is above 0 and below 1.';
  return megabytes > 0 ? null : 'The budget is above 0 MB.';
}

/** `q_proj, v_proj` → its parts. */
function moduleParts(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
