/**
 * Log-likelihoods of continuations: ln p of their tokens after their contexts. What the inputs of an item have in common is
 * run once, its keys, values and states copied for each; items go together, as many as there is room for.
 */
import type { Sequence } from '../forward/chunk';
import type { Runner } from '../forward/runner';
import type { PairIds } from './encoded-pairs';
import { type GroupedPasses, groupedPasses } from './grouped-passes';

/** Log-likelihood of one pair of context and continuation. */
export interface Scored {
  /** Σ ln p of the continuation's tokens, in nats. */
  loglikelihood: number;
  /** No other token was more probable, at any place. */
  isGreedy: boolean;
}

export interface ScoringOptions {
  /** Tokens the model sees at once; longer inputs lose their beginning. */
  maxLength: number;
  /** False runs every input whole. */
  share: boolean;
  /** Called for every item, in order, when its group is done. */
  onItem(index: number, scored: Scored[]): void;
  signal?: AbortSignal;
}

/** Rows of the first group, so that there is something to see soon; every further one is twice as large. */
const FIRST_ROWS = 1024;
/** Beginnings shorter than this are not worth their copies. */
const LEAST_SHARED = 4;

/**
 * Begins to score items of pairs, in order, a group at a time.
 * @throws AmalgamError `TokenOutOfRange`, `ContextTooLong` when a group begins
 */
export function startScoring(
  runner: Runner,
  items: readonly (readonly PairIds[])[],
  { maxLength, share, onItem, signal }: ScoringOptions,
): GroupedPasses {
  const planned = items.map((pairs) => planItem(runner, pairs, maxLength, share));
  return groupedPasses({
    items: [...planned.keys()],
    rowsOf: (i) => planned[i]!.rows,
    mostOf: (group) => Math.min(FIRST_ROWS * 2 ** group, runner.rowsPerPass),
    start(group) {
      const sequences: Sequence[] = [];
      for (const i of group) {
        const base = sequences.length;
        for (const { after, ...sequence } of planned[i]!.sequences) {
          sequences.push(after === undefined ? sequence : { ...sequence, after: base + after });
        }
      }
      return runner.startPass({ sequences, output: 'loss', ...(signal && { signal }) });
    },
    finish(group, { losses, greedy }) {
      let base = 0;
      for (const i of group) {
        const { sequences, answers } = planned[i]!;
        const scored = answers.map((places) => ({
          loglikelihood: -places.reduce((sum, [s, at]) => sum + losses[base + s]![at]!, 0),
          isGreedy: places.every(([s, at]) => greedy[base + s]![at] === 1),
        }));
        base += sequences.length;
        onItem(i, scored);
      }
    },
  });
}

/** An item as sequences of a pass. */
interface PlannedItem {
  /** `after`: index in this list. */
  sequences: Sequence[];
  rows: number;
  /** Per pair, where its losses are: sequence, index among what that asks for. */
  answers: [sequence: number, at: number][][];
}

/** Token ids to run for one pair, and the target ids, the first of which is predicted by row `from`. */
interface Input {
  ids: number[];
  from: number;
  targets: number[];
}

function planItem(runner: Runner, pairs: readonly PairIds[], maxLength: number, share: boolean): PlannedItem {
  const inputs = pairs.map(({ context, continuation }): Input => {
    // cut from the left; the last token is asked for and not run
    const whole = [...context, ...continuation].slice(-(maxLength + 1));
    return { ids: whole.slice(0, -1), from: whole.length - 1 - continuation.length, targets: continuation };
  });
  const item: PlannedItem = { sequences: [], rows: 0, answers: [] };
  const longest = Math.max(...inputs.map(({ ids }) => ids.length));
  const shortest = Math.min(...inputs.map(({ ids }) => ids.length));
  // what rotates otherwise cannot share; and all copies of the keys have to fit
  const canShare = share && shortest > runner.longAfter === longest > runner.longAfter;
  const atOnce = Math.floor(runner.mostKeyRows / longest) - 1;
  const size = canShare && atOnce >= 2 ? atOnce : 1;
  for (let first = 0; first < inputs.length; first += size) {
    addInputs(item, inputs.slice(first, first + size));
  }
  item.rows = item.sequences.reduce((sum, { ids }) => sum + ids.length, 0);
  return item;
}

/** Adds inputs that may share a common beginning. */
function addInputs(item: PlannedItem, inputs: readonly Input[]): void {
  const shared = inputs.length > 1 ? commonLength(inputs.map(({ ids }) => ids)) : 0;
  const askOf = (s: number, at: number, id: number): [number, number] => {
    const sequence = item.sequences[s]! as Sequence & { asks: { at: number; id: number }[] };
    return [s, sequence.asks.push({ at, id }) - 1];
  };
  if (shared < LEAST_SHARED) {
    for (const { ids, from, targets } of inputs) {
      const s = item.sequences.push({ ids, asks: [] }) - 1;
      item.answers.push(targets.map((id, i) => askOf(s, from + i, id)));
    }
    return;
  }
  const parent = item.sequences.push({ ids: inputs[0]!.ids.slice(0, shared), asks: [] }) - 1;
  for (const { ids, from, targets } of inputs) {
    const s =
      ids.length > shared
        ? item.sequences.push({ ids: ids.slice(shared), after: parent, asks: [] }) - 1
        : parent;
    item.answers.push(
      targets.map((id, i) => {
        const at = from + i;
        return at < shared ? askOf(parent, at, id) : askOf(s, at - shared, id);
      }),
    );
  }
}

/** Ids that all begin with. */
function commonLength([first, ...others]: readonly number[][]): number {
  let length = 0;
  while (length < first!.length && others.every((ids) => ids[length] === first![length])) length++;
  return length;
}
