/**
 * `npm run fuzz`: damages sound inputs of every parser, guided by what of our code they reach (coverage.ts). An input that
 * reaches a place, or reaches one more often, as none did before is kept and damaged further. Everything must be refused in
 * words or give a sound result within 100 ms of processor time.
 *
 *     npm run fuzz -- [--share 1 | --minutes 10] [--seed 1] [--only "recipe YAML"]
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { countedTargets } from './coverage';
import { damaged, type Edit, SLOW_MS, show, timed, WORDS } from './fuzz';
import { type FuzzTarget, seedBytes } from './fuzz-targets';
import { randomNumbers } from './rig';

/** Longer inputs reach nothing that shorter ones do not. */
const MOST_BYTES = 20_000;

const { values } = parseArgs({
  options: {
    share: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const { targets, counts, words } = await countedTargets();
const encoder = new TextEncoder();
const allWords = [...WORDS, ...words.map((word) => encoder.encode(word))];
const random = randomNumbers(Number(values.seed));
const below = (n: number) => Math.floor(random() * n);
/** A count as one of eight bits: once, twice, three times, up to 7, 15, 31, 127, more. */
const BUCKET = Uint8Array.from({ length: 256 }, (_, n) =>
  n === 0 ? 0 : n < 4 ? 1 << (n - 1) : n < 8 ? 8 : n < 16 ? 16 : n < 32 ? 32 : n < 128 ? 64 : 128,
);

let failed = 0;
for (const target of targets) {
  if (values.only !== undefined && target.name !== values.only) continue;
  const runs =
    values.minutes === undefined ? Math.ceil(target.runs * Number(values.share)) : Number.POSITIVE_INFINITY;
  failed += await guided(target, runs, Number(values.minutes ?? Number.POSITIVE_INFINITY) * 60_000_000);
}
process.exit(failed === 0 ? 0 : 1);

/**
 * @param runs inputs at most
 * @param micros processor time at most, in microseconds
 * @returns how many inputs were treated wrongly; it stops at the tenth
 */
async function guided(target: FuzzTarget, runs: number, micros: number): Promise<number> {
  const begun = process.cpuUsage();
  const spent = () => {
    const { user, system } = process.cpuUsage(begun);
    return user + system;
  };
  const seen = new Uint8Array(counts.length);
  const corpus = seedBytes(target);
  const result = { name: target.name, runs: 0, taken: 0, refused: 0, slowestMs: 0 };
  let wrong = 0;
  const attempt = async (bytes: Uint8Array<ArrayBuffer>): Promise<boolean> => {
    counts.fill(0);
    try {
      let ms = await timed(target, bytes, result);
      for (let again = 0; again < 2 && ms > SLOW_MS; again++) ms = Math.min(ms, await timed(target, bytes));
      result.slowestMs = Math.max(result.slowestMs, ms);
      if (ms > SLOW_MS) throw new Error(`${ms} ms`);
    } catch (thrown) {
      wrong++;
      console.error(
        `${target.name}: ${thrown instanceof Error ? thrown.stack : String(thrown)}\n  for ${show(bytes)}`,
      );
    }
    let isNew = false;
    for (let at = 0; at < counts.length; at++) {
      const bucket = BUCKET[counts[at]!]!;
      if ((seen[at]! & bucket) === bucket) continue;
      seen[at]! |= bucket;
      isNew = true;
    }
    return isNew;
  };
  for (const seed of corpus) await attempt(seed);
  let run = 0;
  for (; run < runs && wrong < 10; run++) {
    if (run % 100 === 0 && spent() > micros) break;
    // the newest half of the time: what was reached last is followed first
    const chosen =
      corpus[random() < 0.5 ? corpus.length - 1 - below(Math.min(8, corpus.length)) : below(corpus.length)]!;
    const edits = Array.from(
      { length: 1 + below(4) },
      (): Edit => [below(2 ** 30), below(6), below(2 ** 30)],
    );
    let bytes = damaged(chosen, edits, allWords);
    if (random() < 0.1) bytes = crossed(bytes, corpus[below(corpus.length)]!);
    if (bytes.length <= MOST_BYTES && (await attempt(bytes))) corpus.push(bytes);
  }
  const reached = seen.reduce((n, bits) => n + (bits > 0 ? 1 : 0), 0);
  console.log(
    `${target.name}: ${run} inputs, ${result.taken} taken, ${result.refused} refused, ${wrong} wrong, slowest ${result.slowestMs.toFixed(1)} ms; ${corpus.length} kept, ${reached} places reached, ${(spent() / 1e6).toFixed(0)} s of processor time`,
  );
  return wrong;
}

/** The beginning of one and the end of another. */
function crossed(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = a.subarray(0, below(a.length + 1));
  const tail = b.subarray(below(b.length + 1));
  const joined = new Uint8Array(head.length + tail.length);
  joined.set(head);
  joined.set(tail, head.length);
  return joined;
}
