import { formatCounted, formatRate, formatSeconds } from '../../formats/quantity';
import type { BackendKind } from '../../reports/backend';
import type { Progress } from '../../reports/job';
import type { MergeReport } from '../../reports/merge';
import { Button } from '../parts/Button';
import { Message } from '../parts/Message';
import { Costs, Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { runTool, whyNoTool, whyOneEngine } from '../state/job';
import { tensorProgress } from '../state/job-state';
import { currentRun } from '../state/runs';
import { notify, type Studio } from '../state/studio';
import type { StudioState } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';

const NAMES = { webgpu: 'WebGPU', cpu: 'CPU' } as const;

/** Merges the finished run again on the other engine: same bytes or not, and the speed of each. */
export function VerifySection() {
  const studio = useStudio();
  const report = useStudioState((s) => currentRun(s)?.report ?? null);
  const why = useStudioState(whyNotVerify);
  const verifying = useStudioState((s) => s.job?.kind === 'verification');
  const second = useStudioState((s) =>
    s.verification?.recipeSha256 === currentRun(s)?.report?.recipeSha256 ? s.verification : null,
  );
  if (!report) return null;
  const other = NAMES[otherEngine(report.engine)];
  return (
    <Section title="Verify">
      <p className="small quiet">
        Merged on {NAMES[report.engine]}. Both engines give the same bytes; here you can see it: the merge
        runs again on {other} and keeps nothing.
      </p>
      {verifying ? (
        <ToolBar kinds={['verification']} />
      ) : (
        <div className="row">
          <Button why={why} onClick={() => void verifyRun(studio)}>
            Verify on {other}
          </Button>
        </div>
      )}
      {second && !verifying ? <Result {...verification(report, second)} /> : null}
    </Section>
  );
}

function Result({ engines, differing, tensors }: ReturnType<typeof verification>) {
  return (
    <>
      {differing.length === 0 ? (
        <Message tone="ok" live title="Same bytes on both engines: the largest difference is 0." />
      ) : (
        <Message
          tone="warning"
          live
          title={`The engines disagree in ${formatCounted(differing.length, 'file')}: ${differing.join(', ')}.`}
          hint={
            tensors.length === 0
              ? 'The numbers of every tensor are the same, so it is the last bit of a few values.'
              : `The numbers differ in ${formatCounted(tensors.length, 'tensor')}, first in ${tensors[0]}.`
          }
        />
      )}
      <Costs
        items={engines.map(({ engine, seconds, bytes }) => [
          NAMES[engine],
          formatSeconds(seconds),
          `${formatRate(bytes / Math.max(seconds, 1e-3))} of output`,
        ])}
        wraps
      />
    </>
  );
}

// The same merge once more on the other engine, not stored: are the bytes the same, and how fast is each?

/** Merges the last run again on the other engine and compares. Never rejects. */
async function verifyRun(studio: Studio): Promise<void> {
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
  if ('value' in outcome) studio.store.setState({ verification: outcome.value });
  else if ('error' in outcome) notify(studio, 'error', outcome.error.message, outcome.error.hint);
}

/** Two reports of one recipe, compared. Pure. */
export function verification(first: MergeReport, second: MergeReport) {
  const hashes = new Map(second.shards.map((s) => [s.file, s.hash]));
  const numbers = new Map(second.tensors.map((t) => [t.name, t.outputChange]));
  const differing = first.shards.filter((s) => hashes.get(s.file) !== s.hash).map((s) => s.file);
  const unknown = second.shards.filter((s) => !first.shards.some((f) => f.file === s.file));
  return {
    engines: [first, second].map(({ engine, seconds, shards }) => ({
      ...{ engine, seconds, bytes: shards.reduce((sum, s) => sum + s.bytes, 0) },
    })),
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

function otherEngine(engine: BackendKind): BackendKind {
  return engine === 'cpu' ? 'webgpu' : 'cpu';
}
