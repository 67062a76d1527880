/** Actions of the blind test: two models answer the same prompts, and a person votes without knowing whose answer is whose. */
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
import type { RunningProgress } from '../../reports/evaluate';
import { savedTests } from '../local/saved-evaluations';
import { type EvaluationRow, targetKey } from './evaluation-rows';
import { editBlind, whyNotWrite } from './generation';
import { runTool } from './job';
import { runningProgress } from './job-state';
import { isOfSample } from './sample-texts';
import type { Studio } from './studio';
import type { StudioState } from './studio-state';

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
