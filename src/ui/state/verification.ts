/** The same merge once more on the other engine, kept nowhere: are the bytes the same, and how fast is each? */

import type { BackendKind } from '../../reports/backend';
import type { Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import { whyOneEngine } from './engine-summary';
import { runTool, whyNoTool } from './job';
import { tensorProgress } from './job-state';
import type { Timed, Verification } from './runs';
import { currentRun } from './runs';
import { notify, type Studio } from './studio';
import type { StudioState } from './studio-state';

/** Merges the last run again on the other engine and compares. Never rejects. */
export async function verifyRun(studio: Studio): Promise<void> {
  const report = currentRun(studio.store.getState())?.report;
  if (!report || whyNotVerify(studio.store.getState()) !== null) return;
  studio.store.setState({ verification: null });
  const { recipe } = report;
  const engine = otherEngine(report.engine);
  const outcome = await runTool(
    studio,
    'verification',
    (onProgress) => studio.worker.merge({ recipe, engine, destination: { kind: 'nowhere' } }, onProgress),
    (progress: Progress) =>
      tensorProgress({
        ...progress,
        phase: progress.phase === 'downloading' ? 'downloading' : 'checking',
      }),
  );
  if ('value' in outcome) studio.store.setState({ verification: verification(report, outcome.value) });
  else if ('error' in outcome) notify(studio, 'error', outcome.error.message, outcome.error.hint);
}

/** Two reports of one recipe, compared. Pure. */
export function verification(first: MergeReport, second: MergeReport): Verification {
  const hashes = new Map(second.shards.map((s) => [s.file, s.hash]));
  const numbers = new Map(second.tensors.map((t) => [t.name, t.outputChange]));
  const differing = first.shards.filter((s) => hashes.get(s.file) !== s.hash).map((s) => s.file);
  const unknown = second.shards.filter((s) => !first.shards.some((f) => f.file === s.file));
  return {
    recipeSha256: first.recipeSha256,
    first: timed(first),
    second: timed(second),
    differing: [...differing, ...unknown.map((s) => s.file)],
    tensors: first.tensors.filter((t) => numbers.get(t.name) !== t.outputChange).map((t) => t.name),
  };
}

/** Why the last run cannot be verified on the other engine now, or null. */
export function whyNotVerify(state: StudioState): string | null {
  const run = currentRun(state);
  if (!run?.report) return 'Nothing has been merged yet.';
  const alone = run.report.engine === 'cpu' ? whyOneEngine(state) : null;
  return alone ?? whyNoTool(state);
}

export function otherEngine(engine: BackendKind): BackendKind {
  return engine === 'cpu' ? 'webgpu' : 'cpu';
}

function timed({ engine, seconds, shards }: MergeReport): Timed {
  return { engine, seconds, bytes: shards.reduce((sum, s) => sum + s.bytes, 0) };
}
