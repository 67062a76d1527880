/** Calibration texts of all contributors, generated before anything reads them so that several can generate at once. */
import type { Plan } from '../merge/plan/plan';
import { type CalibrationOptions, openAhead } from './calibration-context';
import { readingFor, tokensToWrite } from './readings';

/**
 * Has some of a plan's contributors generate their text, or stores the tokens of the one they are given.
 * @param which indices of the contributors
 * @throws AmalgamError as `calibrate`
 */
export async function writeTexts(
  plan: Plan,
  which: readonly number[],
  options: CalibrationOptions,
): Promise<void> {
  const context = await openAhead(plan, options);
  try {
    const { contributors, size, engine, signal, progress } = context.shared;
    const mine = which.map((i) => contributors[i]!);
    const self = mine.filter(({ source }) => source.kind === 'self').length;
    progress.begin('writing', self * tokensToWrite(size, 'both'));
    for (const contributor of mine) {
      await readingFor(contributor, {
        size,
        use: 'calibration',
        both: true,
        engine: engine.kind,
        signal,
        onProgress: (tokens) => progress.advance(tokens, contributor.id),
      });
    }
  } finally {
    context.close();
  }
}
