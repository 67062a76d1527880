/** Sequences that go through a model in groups, as many as there is room for, and how far they are. */

import type { Pass, PassResult } from '../forward/pass';
import { secondsLeft } from '../reports/time-left';

export interface EvaluateProgress {
  /** Tokens that have passed the whole model, in whole and parts, of `tokens`. */
  tokensDone: number;
  /** Tokens to run: more than are scored, since windows overlap. */
  tokens: number;
  tokensPerSecond: number;
  secondsLeft: number | null;
}

/** Groups in steps, so that several models can take each layer at the same time. */
export interface GroupedPasses {
  readonly progress: EvaluateProgress;
  /** Does the next step; false when there is none left. @throws what `Pass.step` and `Pass.result` throw */
  step(): Promise<boolean>;
  /** Call it however they end. */
  close(): void;
}

interface Groups<T> {
  /** What is run, in this order. */
  items: readonly T[];
  /** Tokens that an item runs. */
  rowsOf(item: T): number;
  /** Tokens of a group, by its number; of one item there may be more. */
  mostOf(group: number): number;
  start(group: readonly T[]): Pass;
  /** Takes the results of a group's pass. */
  finish(group: readonly T[], result: PassResult): void;
}

export function groupedPasses<T>({ items, rowsOf, mostOf, start, finish }: Groups<T>): GroupedPasses {
  const groups: T[][] = [];
  const rows: number[] = [];
  for (const item of items) {
    const own = rowsOf(item);
    if (groups.length === 0 || rows.at(-1)! + own > mostOf(groups.length - 1)) {
      groups.push([]);
      rows.push(0);
    }
    groups.at(-1)!.push(item);
    rows[rows.length - 1]! += own;
  }
  const tokens = rows.reduce((a, b) => a + b, 0);
  const begun = performance.now();
  let at = 0;
  let pass: Pass | undefined;
  return {
    get progress() {
      const share = pass ? pass.stepsDone / pass.steps : 0;
      const tokensDone = rows.slice(0, at).reduce((a, b) => a + b, 0) + share * (rows[at] ?? 0);
      const seconds = (performance.now() - begun) / 1000;
      const tokensPerSecond = seconds > 0 ? tokensDone / seconds : 0;
      const left = secondsLeft({ left: tokens - tokensDone, perSecond: tokensPerSecond });
      return { tokensDone, tokens, tokensPerSecond, secondsLeft: left };
    },
    async step() {
      if (at === groups.length) return false;
      const group = groups[at]!;
      pass ??= start(group);
      if (!(await pass.step())) {
        finish(group, await pass.result());
        pass.close();
        pass = undefined;
        at++;
      }
      return at < groups.length;
    },
    close() {
      pass?.close();
    },
  };
}
