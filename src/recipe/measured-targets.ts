/** What was measured to find the best merge: stored with the time that it took, so that a search that was stopped goes on. */

import type { ErrorReport } from '../errors';
import type { Recipe } from '../formats/recipe';
import type { RunTarget } from '../reports/evaluate';
import type { BestText, TextPart } from '../reports/find-best';
import type { LossBlock } from '../reports/paired-error';
import { beginSha256 } from '../sources/sha256';
import { openRecords, type RecordHeader } from '../store/masks';

/** Losses of a target on some parts of the text, text by text, or why there are none. */
export type Outcome = { blocks: Partial<Record<TextPart, LossBlock[][]>> } | { error: ErrorReport };

/** What measures merges: all that the strategy needs of engines and files. */
export interface BestBench {
  /** Everything about models and texts that figures depend on. */
  key: string;
  texts: readonly Pick<BestText, 'name' | 'kind'>[];
  /** Seconds since the job began, generating text for the most part. */
  seconds: number;
  /** Choosing text that only rivals are measured on, as a share of that for all; 0 where there is time for all of it. */
  rest: number;
  /** Text that rows are reported on, as a share of the choosing text for all. */
  reported: number;
  /** What a model takes until it reads, as a share of reading a part of the text. */
  opening: number;
  /** Measures targets side by side. @throws AmalgamError `Canceled` */
  measure(
    targets: readonly RunTarget[],
    parts: readonly TextPart[],
    stretches?: 'first' | 'rest',
  ): Promise<Outcome[]>;
  /** Work of solving Gram merges, in models measured on a part of the text. */
  workOf(grams: readonly Recipe[]): number;
  /**
   * Solves Gram merges ahead, several at once, and says which are ready; one that fails does so again when it is measured. What
   * was solved of the others by the deadline is there the next time.
   * @throws AmalgamError `Canceled`
   */
  solve(
    grams: readonly Recipe[],
    deadline: AbortSignal,
    onProgress: (share: number) => void,
  ): Promise<boolean[]>;
}

interface MeasuredHeader extends RecordHeader {
  seconds: number;
  outcome: Outcome;
}

/** @param key of everything that outcomes depend on, the targets aside */
export async function openMeasured(bench: BestBench, key: string, base: string) {
  const begun = performance.now();
  const folder = await openRecords(
    JSON.stringify(['best', 3, key]),
    `Measured to find the best merge on ${base}`,
  );
  const count = { measured: 0, reused: 0 };
  /** Seconds that stored results took when they were measured. */
  let earlier = 0;
  const spent = () => bench.seconds + (performance.now() - begun) / 1000;
  /** Measuring so far, in models on a part of the text. */
  const pace = { seconds: 0, work: 0 };
  return {
    /** Losses of targets: stored ones, and others measured now. @throws AmalgamError `Canceled` */
    async take(
      targets: readonly RunTarget[],
      parts: readonly TextPart[],
      stretches: 'first' | 'rest' = 'first',
    ): Promise<Outcome[]> {
      const all: { name: string; target: RunTarget; outcome?: Outcome }[] = [];
      for (const target of targets) {
        const hash = await beginSha256();
        hash.update(new TextEncoder().encode(JSON.stringify([parts, stretches, target])));
        const name = hash.digest();
        const header = (await folder.find<MeasuredHeader>(name))?.header;
        all.push({ name, target, ...(header && { outcome: header.outcome }) });
        if (!header) continue;
        earlier += header.seconds;
        pace.seconds += header.seconds;
        count.reused++;
      }
      const fresh = all.filter(({ outcome }) => !outcome);
      if (fresh.length > 0) {
        const at = performance.now();
        const outcomes = await bench.measure(
          fresh.map(({ target }) => target),
          parts,
          stretches,
        );
        const seconds = (performance.now() - at) / 1000;
        pace.seconds += seconds;
        for (const [i, one] of fresh.entries()) {
          one.outcome = outcomes[i]!;
          const { name, outcome } = one;
          await folder.write<MeasuredHeader>({ name, seconds: seconds / fresh.length, outcome }, []);
        }
      }
      count.measured += targets.length;
      const share = (part: TextPart) =>
        stretches === 'rest' ? bench.rest : part === 'reporting' ? bench.reported : 1;
      pace.work += targets.length * parts.reduce((sum, part) => sum + share(part), bench.opening);
      return all.map(({ outcome }) => outcome!);
    },
    /** Seconds of the job, with those that stored results took. */
    elapsed: () => earlier + spent(),
    /** Seconds of the job alone. */
    spent,
    /** Seconds for a model on a part of the text. */
    pace: () => pace.seconds / Math.max(1, pace.work),
    count: () => ({ ...count }),
  };
}
