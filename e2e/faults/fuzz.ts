/**
 * Damages sound inputs of every parser and looks at what happens: a refusal in words or a sound result within 100 ms,
 * nothing else. `npm run fuzz` (fuzz-guided.ts) runs for long, and collects inputs that reach new code.
 */
import process from 'node:process';
import fc from 'fast-check';
import type { AmalgamError } from '../../src/errors';
import { type FuzzTarget, seedBytes } from './fuzz-targets';

export const SLOW_MS = 100;

export interface FuzzResult {
  name: string;
  runs: number;
  taken: number;
  refused: number;
  slowestMs: number;
}

/** Pieces of text that mean something to one parser or another. */
export const WORDS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\\',
  '\\u0000',
  '\\ud800',
  '\0',
  '\n',
  '\t',
  '-',
  '-0',
  '1e3',
  '1.0',
  '1e999',
  '..',
  '/',
  '../',
  '%2e',
  '\u202e',
  '\ufeff',
  '__proto__',
  '__metadata__',
  'constructor',
  'null',
  'true',
  'NaN',
  '9007199254740993',
  '18446744073709551616',
  '-1',
  '<script>',
  '&a',
  '*a',
  '!!',
  '|',
  '---',
  '(a+)+',
  '.*',
  '\\1',
  ' '.repeat(50),
  '['.repeat(200),
  '{"a":'.repeat(100),
  'a'.repeat(1000),
].map((word) => new TextEncoder().encode(word)); // prettier-ignore

export type Edit = [where: number, kind: number, what: number];

/** The seed with some bytes altered, taken out, put in, doubled, or words put in. */
export function damaged(
  seed: Uint8Array<ArrayBuffer>,
  edits: readonly Edit[],
  words = WORDS,
): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer> = seed;
  for (const [where, kind, what] of edits) {
    const at = where % (bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + (what % 8));
    switch (kind) {
      case 0:
        bytes = spliced(bytes, at, at + 1, Uint8Array.of(what & 255));
        break;
      case 1:
        bytes = spliced(bytes, at, end, new Uint8Array(0));
        break;
      case 2:
        bytes = spliced(bytes, at, at, Uint8Array.of(what & 255));
        break;
      case 3:
        bytes = spliced(bytes, at, at, bytes.slice(what % (bytes.length + 1), end));
        break;
      case 4:
        bytes = spliced(bytes, at, at, words[what % words.length]!);
        break;
      default:
        bytes = spliced(bytes, at, end, words[what % words.length]!);
    }
  }
  return bytes;
}

function spliced(bytes: Uint8Array, begin: number, end: number, put: Uint8Array): Uint8Array<ArrayBuffer> {
  const tail = bytes.subarray(Math.min(end, bytes.length));
  const result = new Uint8Array(begin + put.length + tail.length);
  result.set(bytes.subarray(0, begin));
  result.set(put, begin);
  result.set(tail, begin + put.length);
  return result;
}

/**
 * Runs one target.
 * @param slowMs processor time that one input may take
 * @throws what fast-check reports: the smallest input that is treated wrongly
 */
export async function fuzz(
  target: FuzzTarget,
  runs: number,
  seed: number,
  slowMs = SLOW_MS,
): Promise<FuzzResult> {
  const seeds = seedBytes(target);
  const result: FuzzResult = { name: target.name, runs, taken: 0, refused: 0, slowestMs: 0 };
  const edits = fc.array(fc.tuple(fc.nat(), fc.nat(5), fc.nat()), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.nat(seeds.length - 1), edits, async (which, list) => {
      const bytes = damaged(seeds[which]!, list as Edit[]);
      // other threads' work (the garbage collector's) counts in: what is slow three times is slow
      let ms = await timed(target, bytes, result);
      for (let again = 0; again < 2 && ms > slowMs; again++) ms = Math.min(ms, await timed(target, bytes));
      result.slowestMs = Math.max(result.slowestMs, ms);
      if (ms > slowMs) throw new Error(`${ms} ms for ${show(bytes)}`);
    }),
    { numRuns: runs, seed },
  );
  return result;
}

/** Milliseconds of processor time: a busy machine makes everything slow by the clock. */
export async function timed(
  target: FuzzTarget,
  bytes: Uint8Array<ArrayBuffer>,
  count?: FuzzResult,
): Promise<number> {
  const begun = process.cpuUsage();
  try {
    const found = target.parse(bytes);
    // most parsers answer at once: waiting a million times would take longer than they do
    const wrong = found instanceof Promise ? await found : found;
    if (wrong !== undefined) throw new Error(`${wrong}: ${show(bytes)}`);
    if (count) count.taken++;
  } catch (thrown) {
    if (!isRefusal(thrown)) throw thrown;
    if (count) count.refused++;
  }
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

/** An error in words; the code with counters has a class of its own. */
function isRefusal(thrown: unknown): boolean {
  const { hint, code } = thrown as Partial<AmalgamError>;
  return thrown instanceof Error && typeof hint === 'string' && hint !== '' && code !== 'Internal';
}

export function show(bytes: Uint8Array): string {
  return JSON.stringify(new TextDecoder('latin1').decode(bytes.subarray(0, 400)));
}
