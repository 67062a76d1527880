import { errorReport } from '../../errors';
import { generateOptions } from '../../evaluate/options';
import type { Recipe } from '../../formats/recipe';
import {
  BLIND_PROMPTS,
  type BlindTest,
  blindOutcome,
  blindTest,
  SAMPLE_BLIND_PROMPTS,
  type Side,
  voteAt,
} from '../../reports/blind-test';
import type { GenerateReport, MemoryRequest, RunningProgress } from '../../reports/evaluate';
import { optionsProblem } from '../../reports/option';
import { savedTests } from '../local/database';
import { type EvaluationRow, evaluationRows, targetKey } from './evaluation-rows';
import type { BlindSlice, GenerationColumn, GenerationSlice, WritingSettings } from './generation-state';
import { beginJob, isAtWork, reportProgress, runTool } from './job';
import { runningProgress } from './job-state';
import { whyNotRun } from './measure';
import { isOfSample } from './sample-texts';
import { editSlice, type Studio, type StudioState, showTab } from './studio';

// Actions of the Try tab: the same prompt continued by base, the recipe as it stands, and other merges.

/** A merge that is ready after so many seconds follows the sliders by itself. */
const FOLLOW_SECONDS = 5;

export function editGenerationSettings(studio: Studio, change: Partial<WritingSettings>): void {
  editSlice(studio, 'generation', ({ settings }) => ({ settings: { ...settings, ...change } }));
}

export function editBlind(studio: Studio, change: Partial<BlindSlice>): void {
  editSlice(studio, 'generation', ({ blind }) => ({ blind: { ...blind, ...change } }));
}

/** Why nothing can be written now, or null. */
export function whyNotWrite(state: StudioState): string | null {
  const { settings } = state.generation;
  if (settings.prompt.trim() === '') return 'Write a prompt first.';
  return optionsProblem(generateOptions, settings) ?? whyNotRun(state);
}

/** Tokens by which the length of a prompt is looked at, each character being one at most; and room for what a chat adds. */
const PROMPT_STEP = 256;

export function memoryRequest(
  rows: readonly EvaluationRow[],
  { generation, engine }: StudioState,
): MemoryRequest {
  const { prompt, chat, maxTokens, weights } = generation.settings;
  const added = chat ? PROMPT_STEP : 1;
  const promptTokens = Math.ceil((prompt.length + added) / PROMPT_STEP) * PROMPT_STEP;
  const base = rows.find(({ id }) => id === 'base')?.target;
  return {
    targets: rows.map(({ target }) => target),
    ...(base && rows.length > 1 && { against: base }),
    ...{ promptTokens, maxTokens, weights, engine: engine.choice },
  };
}

/** Of the texts of rows, what their memory depends on. */
export function memoryKey(rows: readonly EvaluationRow[], state: StudioState): string {
  const { targets, ...request } = memoryRequest(rows, state);
  const structures = targets.map((target) => {
    if ('model' in target) return target.model;
    const { mergeMethod, outDtype, models = [] } = target.recipe;
    return [mergeMethod, outDtype, models.map(({ model }) => model)];
  });
  return JSON.stringify([structures, request]);
}

/** Whether texts follow the recipe. */
export function setFollowing(studio: Studio, follows: boolean): void {
  editSlice(studio, 'generation', () => ({ follows }));
}

/** A column for each row: its text where the same weights have written it, else the text that stood there, out of date. */
export function columnsOf(
  rows: readonly EvaluationRow[],
  { columns, written }: Pick<GenerationSlice, 'columns' | 'written'>,
): GenerationColumn[] {
  return rows.map(({ id, label, color, target }) => {
    const key = targetKey(target);
    const before =
      columns.find((column) => targetKey(column.target) === key) ??
      columns.find((column) => column.id === id);
    const isMixed = before?.status === 'done' && before.turns.length > 0;
    const stale = written !== null && (before === undefined || isMixed || targetKey(before.target) !== key);
    return { ...(before ?? EMPTY), id, label, color, target: before?.target ?? target, stale };
  });
}

const EMPTY: Omit<GenerationColumn, 'id' | 'label' | 'color' | 'target'> = {
  status: 'waiting',
  stale: false,
  text: '',
  turns: [],
  progress: null,
  readySeconds: null,
  report: null,
  error: null,
};

/**
 * Continues the prompt by every model whose text is not there, one after the other; where all are there, by all with the next
 * seed. A model that cannot shows why. Never rejects.
 */
export async function write(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const { settings, written, columns } = studio.store.getState().generation;
  if (whyNotWrite(studio.store.getState()) !== null) return;
  const isSame = written !== null && JSON.stringify(settings) === JSON.stringify(written);
  const there = columnsOf(rows, { columns, written }).filter(isWritten);
  if (isSame && there.length === rows.length)
    editGenerationSettings(studio, { seed: nextSeed(settings.seed) });
  if (!isSame || there.length === rows.length) editSlice(studio, 'generation', () => ({ columns: [] }));
  await fill(studio, rows, studio.store.getState().generation.settings);
}

function nextSeed(seed: number): number {
  return (seed + 1) % 2 ** 32;
}

function isWritten({ stale, status }: GenerationColumn): boolean {
  return !stale && status === 'done';
}

/** Whether nothing follows the recipe: before the first text, where it is not wanted, and where a merge takes long to be ready. */
export function standsStill({ generation: { columns, written, follows } }: StudioState): boolean {
  return !follows || written === null || columns.some((c) => (c.readySeconds ?? 0) > FOLLOW_SECONDS);
}

/**
 * Has the texts follow their rows, with the same prompt and seed: one that is being written goes on with the changed recipe,
 * and all that are of other weights are written again once the engine is free. Merges that take long to be ready wait for a press.
 * Never rejects.
 */
export async function follow(studio: Studio, rows: readonly EvaluationRow[]): Promise<void> {
  const state = studio.store.getState();
  const { written } = state.generation;
  if (written === null || standsStill(state)) return;
  const stale = columnsOf(rows, state.generation).flatMap((column, i) =>
    column.stale ? [{ ...column, row: rows[i]! }] : [],
  );
  if (stale.length === 0) return;
  if (!isAtWork(state, 'generation')) {
    if (whyNotWrite(state) === null) await fill(studio, rows, written);
    return;
  }
  for (const { id, status, row } of stale) {
    if (status === 'waiting') editColumn(studio, id, { target: row.target });
    if (status === 'writing' && 'recipe' in row.target) await steer(studio, id, row.target);
  }
}

/** Has the text of a column go on with another recipe; where it does not, it is still of the one before. */
async function steer(studio: Studio, id: string, target: { recipe: Recipe }): Promise<void> {
  const was = studio.store.getState().generation.columns.find((column) => column.id === id)!.target;
  editColumn(studio, id, { target });
  // an engine that ends meanwhile is told of by the text that it was writing
  if (await studio.worker.steer(target.recipe).catch(() => false)) return;
  editColumns(studio, (c) => (c.id === id && c.target === target ? { target: was } : {}));
}

async function fill(
  studio: Studio,
  rows: readonly EvaluationRow[],
  settings: WritingSettings,
): Promise<void> {
  const { generation, engine } = studio.store.getState();
  const columns = columnsOf(rows, generation).map((column, i) =>
    isWritten(column)
      ? column
      : // the text that stood there stays until the new one begins
        { ...column, ...EMPTY, text: column.text, target: rows[i]!.target },
  );
  editSlice(studio, 'generation', () => ({ columns, written: settings }));
  const base = rows.find(({ id }) => id === 'base')?.target;
  const end = beginJob(studio, 'generation');
  try {
    for (const { id, status } of columns) {
      if (status !== 'waiting') continue;
      if (studio.store.getState().job?.canceling) break;
      const { target } = studio.store.getState().generation.columns.find((column) => column.id === id)!;
      editColumn(studio, id, { status: 'writing' });
      const begun = performance.now();
      try {
        const report: GenerateReport = await studio.worker.generate(
          {
            ...{ target, ...settings, engine: engine.choice, live: 'recipe' in target },
            ...(base && id !== 'base' && { against: base }),
          },
          (progress) => append(studio, id, progress, begun),
        );
        editColumn(studio, id, { status: 'done', report, text: report.text });
      } catch (thrown) {
        const error = errorReport(thrown);
        if (error.code === 'Canceled') break;
        editColumn(studio, id, { status: 'failed', error });
      }
    }
  } finally {
    editColumns(studio, ({ status }) =>
      status === 'waiting' || status === 'writing' ? { status: 'canceled' } : {},
    );
    end();
  }
}

function append(studio: Studio, id: string, progress: RunningProgress, begun: number): void {
  reportProgress(studio, 'generation', runningProgress(progress));
  const { phase, done, rate, text = '', turnSeconds } = progress;
  if (phase !== 'running') return;
  if (turnSeconds !== undefined) {
    editSlice(studio, 'generation', () => ({ turnSeconds }));
    editColumns(studio, (c) => (c.id === id ? { turns: [...c.turns, c.text.length] } : {}));
    return;
  }
  editColumns(studio, (c) =>
    // messages may arrive after the report, which has the whole text
    c.id === id && c.status === 'writing'
      ? {
          text: c.progress ? c.text + text : text,
          progress: { done, rate },
          readySeconds: c.readySeconds ?? (performance.now() - begun) / 1000,
        }
      : {},
  );
}

function editColumn(studio: Studio, id: string, change: Partial<GenerationColumn>): void {
  editColumns(studio, (c) => (c.id === id ? change : {}));
}

function editColumns(studio: Studio, edit: (column: GenerationColumn) => Partial<GenerationColumn>): void {
  editSlice(studio, 'generation', ({ columns }) => ({ columns: columns.map((c) => ({ ...c, ...edit(c) })) }));
}

/** Base and the recipe's merge, which answer in any case; the contributors where they are asked too. */
export function answeringModels(
  { recipe, models }: Pick<StudioState, 'recipe' | 'models'>,
  contributors: boolean,
): EvaluationRow[] {
  return evaluationRows(recipe, models).filter(
    ({ id, group }) => group === 'models' && (contributors || id === 'base'),
  );
}

// The step after a merge.

/** Has base and merge continue the same prompt. Never rejects. */
export async function tryMerge(studio: Studio): Promise<void> {
  showTab(studio, 'try');
  const { recipe, models } = studio.store.getState();
  await write(
    studio,
    evaluationRows(recipe, models).filter(({ id, current }) => id === 'base' || current),
  );
}

// Actions of the blind test: two models answer the same prompts, and a person votes without knowing whose answer is whose.

/** The prompts as they are typed, one a line. */
export function blindPrompts(state: StudioState): string {
  return (
    state.generation.blind.prompts ?? (isOfSample(state) ? SAMPLE_BLIND_PROMPTS : BLIND_PROMPTS).join('\n')
  );
}

/** Why no test can begin, or null. */
export function whyNotTest(state: StudioState, pair: readonly (EvaluationRow | undefined)[]): string | null {
  const { generation } = state;
  if (!pair[0] || !pair[1]) return 'Choose two models.';
  if (targetKey(pair[0].target) === targetKey(pair[1].target)) return 'Choose two different models.';
  const settings = { ...generation.settings, prompt: blindPrompts(state) };
  return whyNotWrite({ ...state, generation: { ...generation, settings } });
}

/** Has both models answer all prompts; the votes come after. Never rejects. */
export async function beginBlindTest(
  studio: Studio,
  pair: readonly [EvaluationRow, EvaluationRow],
): Promise<void> {
  const state = studio.store.getState();
  if (whyNotTest(state, pair) !== null) return;
  const { prompt: _, ...settings } = state.generation.settings;
  const prompts = blindPrompts(state)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const [a, b] = pair.map(({ label, target }) => ({ label, target }));
  const models = [a!, b!] as const;
  editBlind(studio, { error: null });
  const targets = models.map(({ target }) => target);
  const outcome = await runTool<RunningProgress, string[][]>(
    studio,
    'generation',
    (onProgress) =>
      studio.worker.answers({ ...settings, targets, prompts, engine: state.engine.choice }, onProgress),
    (progress) => runningProgress(progress),
  );
  if ('error' in outcome) editBlind(studio, { error: outcome.error });
  if ('value' in outcome)
    take(studio, blindTest({ at: Date.now(), models, settings }, prompts, outcome.value));
}

/** Index of the prompt that is to be voted on; −1 after the last. */
export function votedOn({ prompts }: BlindTest): number {
  return prompts.findIndex(({ vote }) => vote === null);
}

/** Votes for the answer that is shown in this place, or for neither, and goes on to the next prompt. */
export function vote(studio: Studio, place: Side | 'neither'): void {
  const { test } = studio.store.getState().generation.blind;
  if (!test) return;
  const at = votedOn(test);
  const prompts = test.prompts.map((own, i) => (i === at ? { ...own, vote: voteAt(own, place) } : own));
  take(studio, { ...test, prompts });
}

/** Ends a test with the votes that there are. */
export function endBlindTest(studio: Studio): void {
  const { test } = studio.store.getState().generation.blind;
  if (test) take(studio, { ...test, prompts: test.prompts.filter((own) => own.vote !== null) });
}

/** Shows a test, or, where nothing is left to vote on, saves it. */
function take(studio: Studio, test: BlindTest): void {
  const isOver = votedOn(test) < 0;
  editBlind(studio, { test: isOver ? null : test });
  if (!isOver || test.prompts.length === 0) return;
  editBlind(studio, { tests: [test, ...studio.store.getState().generation.blind.tests] });
  // without storage it lasts as long as the page
  savedTests.save(test).catch(() => undefined);
}

/** Votes for and against the merge of a recipe in its newest test: `votes 6 : 1`; null without one. */
export function votesOn(tests: readonly BlindTest[], recipe: Recipe): string | null {
  const key = targetKey({ recipe });
  for (const test of tests) {
    const side = test.models.findIndex(({ target }) => targetKey(target) === key);
    const { wins } = blindOutcome(test);
    if (side >= 0) return `votes ${wins[side]}\u00a0:\u00a0${wins[1 - side]}`;
  }
  return null;
}
