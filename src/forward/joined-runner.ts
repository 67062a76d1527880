/**
 * One model on several backends of a kind: the sequences of a pass are dealt out among them, and all take each layer at
 * the same time. On the processor a row has the same bits whatever runs beside it, so results are those of one backend.
 */
import type { Backend } from '../backend/backend';
import type { Architecture } from '../models/architecture';
import { spareArray } from '../sources/spare-arrays';
import type { Sequence } from './chunk';
import { type Pass, type PassResult, wholePass } from './pass';
import { allEnded } from './queue';
import { openRunner, type Runner, type RunnerOptions } from './runner';
import type { WeightSource } from './weight-source';

const DEFAULT_ACTIVATION_BYTES = 256 * 2 ** 20;

/**
 * Opens a model on one backend or several. Each holds the current layer; passes with a cache, with taps or from the middle
 * go through the first alone.
 * @throws as {@link openRunner}
 */
export function openJoinedRunner(
  engines: readonly Backend[],
  architecture: Architecture,
  source: WeightSource,
  options: RunnerOptions = {},
): Runner {
  const [engine, ...others] = engines as [Backend, ...Backend[]];
  if (others.length === 0) return openRunner(engine, architecture, source, options);
  const { activationBytes = DEFAULT_ACTIVATION_BYTES } = options;
  const shared = shareWeights(source);
  const own = { ...options, activationBytes: activationBytes / engines.length };
  const runners = engines.map((one) => openRunner(one, architecture, shared.source, own));
  const first = runners[0]!;
  const startPass: Runner['startPass'] = (request) => {
    const whole = request.cache || request.taps || request.enter;
    const shares = dealOut(request.sequences, whole ? 1 : runners.length);
    const passes = shares.map((share, i) =>
      runners[i]!.startPass({ ...request, sequences: takeShare(request.sequences, share) }),
    );
    return joinPasses(passes, shares, shared);
  };
  return {
    ...first,
    get peakBytes() {
      return runners.reduce((sum, runner) => sum + runner.peakBytes, 0);
    },
    startPass,
    pass: (request, onStep) => wholePass(startPass(request), onStep),
    openWalk(texts, signal) {
      shared.readers(1);
      return first.openWalk(texts, signal);
    },
    weightEffects(request) {
      shared.readers(1);
      return first.weightEffects(request);
    },
    async renew(changed, signal) {
      shared.readers(runners.length);
      await allEnded(runners.map((runner) => runner.renew(changed, signal)));
    },
    close() {
      for (const runner of runners) runner.close();
    },
  };
}

/**
 * Indices of the sequences by who runs them: the longest first, to whom has the fewest rows. Those that continue another
 * one stay with it. Nobody has none.
 */
function dealOut(sequences: readonly Sequence[], most: number): number[][] {
  const families = new Map<number, { rows: number; members: number[] }>();
  for (const [index, { ids, after = index }] of sequences.entries()) {
    const family = families.get(after) ?? { rows: 0, members: [] };
    family.rows += ids.length;
    family.members.push(index);
    families.set(after, family);
  }
  const shares = Array.from({ length: Math.max(1, Math.min(most, families.size)) }, () => ({
    rows: 0,
    members: [] as number[],
  }));
  for (const { rows, members } of [...families.values()].sort((a, b) => b.rows - a.rows)) {
    const share = shares.reduce((least, one) => (one.rows < least.rows ? one : least));
    share.rows += rows;
    share.members.push(...members);
  }
  return shares.map(({ members }) => members.sort((a, b) => a - b));
}

function takeShare(sequences: readonly Sequence[], share: readonly number[]): Sequence[] {
  return share.map((index) => {
    const sequence = sequences[index]!;
    return sequence.after === undefined ? sequence : { ...sequence, after: share.indexOf(sequence.after) };
  });
}

function joinPasses(passes: readonly Pass[], shares: readonly number[][], shared: SharedWeights): Pass {
  const first = passes[0]!;
  return {
    steps: first.steps,
    get stepsDone() {
      return first.stepsDone;
    },
    tokens: passes.reduce((sum, pass) => sum + pass.tokens, 0),
    async step() {
      shared.readers(passes.length);
      const isFirst = first.stepsDone === 0;
      const goesOn = await allEnded(passes.map((pass) => pass.step()));
      // the embedding's rows are another's each, and a layer may be on its way from the second step on
      if (isFirst) shared.forget();
      return goesOn[0]!;
    },
    async result() {
      const results = await allEnded(passes.map((pass) => pass.result()));
      const joined: PassResult = { losses: [], greedy: [], logits: [], sums: [], drawn: [] };
      for (const [s, share] of shares.entries()) {
        for (const field of ['losses', 'greedy', 'logits', 'sums', 'drawn'] as const) {
          const own = results[s]![field];
          for (const [i, index] of share.entries())
            if (i in own) Object.assign(joined[field], { [index]: own[i] });
        }
      }
      return joined;
    },
    close() {
      for (const pass of passes) pass.close();
      shared.forget();
    },
  };
}

// Weights that several runners of one model read side by side: each piece comes from the source once.

interface SharedWeights {
  /** The source as each of the runners sees it. */
  source: WeightSource;
  /** Number of runners that will ask for each piece read from now on. */
  readers(count: number): void;
  /** Lets go of pieces that not every runner has asked for. */
  forget(): void;
}

/** Shares a source. A piece stays in memory until as many have asked for it as there are readers; the last gets it without a copy. */
function shareWeights(source: WeightSource): SharedWeights {
  const pieces = new Map<string, { bytes: Promise<Uint8Array<ArrayBuffer>>; left: number }>();
  let count = 1;
  return {
    source: {
      ...source,
      async read(name, begin, end, signal) {
        const key = `${begin} ${end} ${name}`;
        const piece = pieces.get(key) ?? { bytes: source.read(name, begin, end, signal), left: count };
        piece.left--;
        if (piece.left > 0) pieces.set(key, piece);
        else pieces.delete(key);
        // earlier readers have their copy by then: they wait for the same promise
        const isLast = piece.left <= 0;
        const bytes = await piece.bytes;
        if (isLast) return bytes;
        const copy = spareArray(bytes.length);
        copy.set(bytes);
        return copy;
      },
    },
    readers(wanted) {
      count = wanted;
    },
    forget: () => pieces.clear(),
  };
}
