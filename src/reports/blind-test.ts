/**
 * A blind test: the same prompts answered by two models, side by side in random order without their names, and which answer a
 * person preferred. Pure.
 */
import { formatPercent } from '../formats/quantity';
import type { GenerationSettings, RunTarget } from './evaluate';

/** Of the two of {@link BlindTest}. */
export type Side = 0 | 1;

export interface BlindTest {
  /** When it began, in milliseconds since 1970. */
  at: number;
  models: readonly [BlindModel, BlindModel];
  settings: Omit<GenerationSettings, 'prompt'>;
  prompts: readonly BlindPrompt[];
}

interface BlindModel {
  label: string;
  target: RunTarget;
}

export interface BlindPrompt {
  prompt: string;
  /** In the order of the models. */
  answers: readonly [string, string];
  /** Whose answer is shown first. */
  first: Side;
  /** Whose answer was preferred; `neither` also where both are the same; null before the vote. */
  vote: Side | 'neither' | null;
}

export interface BlindOutcome {
  /** Votes for each model. */
  wins: readonly [number, number];
  neither: number;
  /** Ends of the 95 % interval of the share of votes for the first model; votes for neither are left out (Dixon and Mood 1946). */
  interval: readonly [number, number];
  /** Who is preferred, where the interval leaves out a half; else null. */
  preferred: Side | null;
}

/** A test of two models' answers, in random order. @param answers by model and prompt */
export function blindTest(
  test: Omit<BlindTest, 'prompts'>,
  prompts: readonly string[],
  answers: readonly (readonly string[])[],
): BlindTest {
  const shown = prompts.map((prompt, i): BlindPrompt => {
    const [a, b] = [answers[0]![i]!, answers[1]![i]!];
    return { prompt, answers: [a, b], first: Math.random() < 0.5 ? 0 : 1, vote: a === b ? 'neither' : null };
  });
  return { ...test, prompts: shown };
}

/** The vote for the answer that is shown in a place. */
export function voteAt({ first }: BlindPrompt, place: Side | 'neither'): Side | 'neither' {
  if (place === 'neither') return place;
  return place === 0 ? first : first === 0 ? 1 : 0;
}

/** Who won, as far as the votes say. */
export function blindWords(test: BlindTest): string {
  const { wins, neither, interval, preferred } = blindOutcome(test);
  const [a, b] = test.models.map(({ label }) => label);
  const [low, high] = interval.map(formatPercent);
  const said =
    preferred === null
      ? `Cannot be told apart after ${test.prompts.length}`
      : `${[a, b][preferred]} is preferred`;
  return `${said}: ${a} ${wins[0]}, ${b} ${wins[1]}, neither ${neither}. The share of ${a} is ${low} to ${high} (95\u00a0% interval).`;
}

export function blindOutcome({ prompts }: BlindTest): BlindOutcome {
  const count = (of: BlindPrompt['vote']) => prompts.filter(({ vote }) => vote === of).length;
  const wins = [count(0), count(1)] as const;
  const interval = binomialInterval(wins[0], wins[0] + wins[1]);
  const preferred = interval[0] > 0.5 ? 0 : interval[1] < 0.5 ? 1 : null;
  return { wins, neither: count('neither'), interval, preferred };
}

/**
 * The 95 % interval of a share of which `hits` of `of` draws were seen: exact, never too narrow (Clopper and Pearson 1934). Its ends
 * are the shares at which as many hits, or more, and as many, or fewer, have a probability of 2.5 %.
 */
export function binomialInterval(hits: number, of: number): [number, number] {
  return [lowerEnd(hits, of), 1 - lowerEnd(of - hits, of)];
}

function lowerEnd(hits: number, of: number): number {
  let [low, high] = [0, hits / Math.max(1, of)];
  for (let i = 0; i < 50; i++) {
    const share = (low + high) / 2;
    if (atLeast(hits, of, share) < 0.025) low = share;
    else high = share;
  }
  return low;
}

/** Probability of `hits` or more of `of` draws. */
function atLeast(hits: number, of: number, share: number): number {
  let [term, sum] = [share ** of, 0];
  for (let k = of; k >= hits; k--) {
    sum += term;
    term *= (k / (of - k + 1)) * ((1 - share) / share);
  }
  return sum;
}

/** Prompts of a blind test before the user writes some: of the sample family, and of other models. */
export const SAMPLE_BLIND_PROMPTS = [
  ...['Recipe:', 'Log of the', 'Journal of the', 'Job:', 'Fault:', 'Story: The'],
  ...['Recipe: Leek', 'Log of the Gull', 'Job: Mend', 'Story: A'],
];
export const BLIND_PROMPTS = [
  'Explain in simple words why the sky is blue.',
  'Write the beginning of a story about a lighthouse.',
  'What should I look at before I buy a used bicycle?',
  'Give three reasons for and three against working at night.',
  'Summarize how a bill becomes a law.',
  'A train leaves at 9:40 and takes 85 minutes. When does it arrive? Explain each step.',
  'Write a polite answer to a customer whose parcel is late.',
  'Which planet is the largest, and how do we know?',
  'Write a function that tells whether a word reads the same backward.',
  'Turn this into a haiku: rain on the roof, and tea.',
];
