/**
 * The kill test: a download and merge against the fake Hub is cut off by SIGKILL at seeded random moments; the browser
 * is started again on the same profile and goes on. Every run must end with the bytes of an undisturbed one, and
 * nothing that is listed as whole may ever be otherwise. Outputs go into browser storage and into a folder, as several
 * shards and as one; in some cases a written bit flips before the merge resumes.
 *
 *     npm run faults:kill -- [--kills 50] [--seed 1]
 */
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DOWNLOAD_SIZES } from '../../src/store/blob-record';
import type { FakeHub } from '../fake-hub';
import { startChromium } from './chromium-process';
import { KILL_RECIPE, ONE_SHARD_RECIPE } from './kill-models';
import { type Attempt, damageOutput, type Moment, storedState } from './kill-page';
import { attempt, openPage, type Rig, randomNumbers, undisturbed, withProfile, withRig } from './rig';

export interface KillOutcome {
  kind: Attempt['kind'];
  shards: Shards;
  moment: Moment;
  /** The file in which a bit was flipped between the kill and the second start. */
  damaged?: string;
  /** State found by the second start: nothing, a merge and the number of its written tensors, or all of it. */
  found: 'nothing' | 'all' | number;
  /** Shards have the reference hashes. */
  same: boolean;
  /** Listed as whole, but with other bytes; swap files left after the second start. */
  wrong: string[];
  /** Bytes of a weight file sent beyond one copy of it; the most of all files. */
  fetchedAgain: number;
}

type Shards = 'several' | 'one';

/** Between a moment and its kill, in milliseconds: progress is reported ten times a second. */
const JITTER_MS = 120;

/** Runs the test; `tell` gets each kill, `say` everything else. */
export async function killTest(
  kills: number,
  seed: number,
  tell: (outcome: KillOutcome, index: number) => void = () => {},
  say: (line: string) => void = () => {},
): Promise<KillOutcome[]> {
  return withRig(async (rig) => {
    const [several, one] = await undisturbed(rig, 'cpu', [KILL_RECIPE, ONE_SHARD_RECIPE]);
    const references = { several: several!, one: one! };
    say(`reference: ${references.several.size} shards, and one`);
    const random = randomNumbers(seed);
    const outcomes: KillOutcome[] = [];
    for (let i = 0; i < kills; i++) {
      const kind = i % 2 === 0 ? 'downloads' : 'folder';
      // all four of both, and with two kills each of either
      const shards = i % 4 === 0 || i % 4 === 3 ? 'several' : 'one';
      const damages = i % 5 === 4;
      // a third of the kills fall into the download; to flip a bit, something must be written
      const moment: Moment = damages
        ? { phase: 'merging', share: (1 + random()) / 2 }
        : { phase: random() < 1 / 3 ? 'downloading' : 'merging', share: random() };
      const how = { kind, shards, moment, damages, jitterMs: random() * JITTER_MS } as const;
      const outcome = await killOnce(rig, references[shards], how);
      outcomes.push(outcome);
      tell(outcome, i);
    }
    return outcomes;
  });
}

async function killOnce(
  rig: Rig,
  reference: ReadonlyMap<string, string>,
  how: { kind: Attempt['kind']; shards: Shards; moment: Moment; damages: boolean; jitterMs: number },
): Promise<KillOutcome> {
  const { hub, server } = rig;
  const { kind, shards, moment, damages, jitterMs } = how;
  const what = { kind, engine: 'cpu', recipe: shards === 'one' ? ONE_SHARD_RECIPE : KILL_RECIPE } as const;
  const from = hub.requests.length;
  return withProfile(async (profile) => {
    const first = await startChromium(profile);
    await openPage(first.page, server);
    let come = () => {};
    const hasCome = new Promise<void>((resolve) => {
      come = resolve;
    });
    await first.page.exposeFunction('amalgamMoment', come);
    const ended = attempt(first.page, hub, { ...what, moment }).then(
      () => true,
      () => false,
    );
    await Promise.race([hasCome.then(() => delay(jitterMs)), ended]);
    const isReported = await Promise.race([ended, delay(0, false)]);
    await first.kill();
    await ended;

    const second = await startChromium(profile);
    try {
      await openPage(second.page, server);
      // the start-up cleaning has run when the engine answers
      const left = await second.page.evaluate(() => window.amalgamCalls!.interrupted());
      const before = await second.page.evaluate(storedState);
      // a run can end before its kill without reporting it: all of it must be there
      const isOver = isReported || (before.outputs.length > 0 && left.length === 0);
      const damaged = damages && !isOver ? await second.page.evaluate(damageOutput) : null;
      const resumed = isOver ? null : (await attempt(second.page, hub, what)).resumed;
      const now = await second.page.evaluate(storedState);
      const written = now.outputs.filter(({ path }) => path.endsWith('.safetensors'));
      return {
        kind,
        shards,
        moment,
        ...(damaged === null ? {} : { damaged }),
        found: isOver ? 'all' : resumed ? resumed.tensorsDone : 'nothing',
        same:
          written.length === reference.size &&
          written.every(({ path, hash }) => reference.get(path.split('/').at(-1)!) === hash),
        wrong: [before, now].flatMap(({ blobs, outputs, orphans }) => [
          ...blobs.filter((b) => b.actual !== b.sha256).map((b) => `blob ${b.sha256}`),
          ...outputs
            .filter(({ path }) => path.endsWith('.safetensors'))
            .filter(({ path, hash }) => reference.get(path.split('/').at(-1)!) !== hash)
            .map(({ path }) => path),
          ...(blobs === now.blobs ? orphans : []),
        ]),
        fetchedAgain: fetchedAgain(hub, from),
      };
    } finally {
      await second.close();
    }
  });
}

/**
 * Bytes of a weight file sent since `from`, less one copy of it; the most of all files. The system takes
 * what the browser has not read yet, so some of them never reached the page.
 */
function fetchedAgain(hub: FakeHub, from: number): number {
  const sent = new Map<string, number>();
  const lengths = new Map<string, number>();
  for (const request of hub.requests.slice(from)) {
    const { server, path, range, method } = request;
    const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? [];
    if (server !== 'cdn' || method !== 'GET' || end === undefined) continue;
    // headers are read before anything is downloaded
    if (Number(end) + 1 - Number(begin) <= 32 * 1024) continue;
    sent.set(path, (sent.get(path) ?? 0) + request.sent);
    lengths.set(path, Math.max(lengths.get(path) ?? 0, Number(end) + 1));
  }
  return Math.max(0, ...[...sent].map(([path, bytes]) => bytes - lengths.get(path)!));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { kills: { type: 'string', default: '50' }, seed: { type: 'string', default: '1' } },
  });
  const report = (o: KillOutcome, i: number) => {
    const found = typeof o.found === 'number' ? `${o.found} tensors found` : `${o.found} found`;
    const verdict = o.same && o.wrong.length === 0 ? 'same bytes' : `WRONG ${o.wrong.join(' ')}`;
    const again = o.fetchedAgain === 0 ? 'nothing' : `${o.fetchedAgain} bytes`;
    const bit = o.damaged === undefined ? '' : `a bit of ${o.damaged} turned, `;
    console.log(
      `${i + 1}: ${o.kind}, ${o.shards} shard${o.shards === 'one' ? '' : 's'}, killed at ${Math.round(100 * o.moment.share)} % of ${o.moment.phase}, ${found}, ${bit}${verdict}, ${again} fetched again`,
    );
  };
  const outcomes = await killTest(Number(values.kills), Number(values.seed), report, console.log);
  const good = outcomes.filter((o) => o.same && o.wrong.length === 0).length;
  const single = outcomes.filter((o) => o.kind === 'folder' && o.shards === 'one').length;
  const damaged = outcomes.filter((o) => o.damaged !== undefined).length;
  console.log(`${good} of ${outcomes.length} ended with the reference bytes and nothing listed wrongly`);
  console.log(`${single} of them one shard in a folder, ${damaged} with a bit turned`);
  const again = Math.max(...outcomes.map((o) => o.fetchedAgain));
  console.log(`${again} bytes of a file fetched again at most, ${DOWNLOAD_SIZES.request} allowed`);
  process.exit(good === outcomes.length && again <= DOWNLOAD_SIZES.request ? 0 : 1);
}
