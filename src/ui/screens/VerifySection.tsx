import { formatCounted, formatRate, formatSeconds } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { Costs } from '../parts/Costs';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import type { Verification } from '../state/runs';
import { currentRun } from '../state/runs';
import { otherEngine, verifyRun, whyNotVerify } from '../state/verification';
import { useStudio, useStudioState } from '../studio-context';

const NAMES = { webgpu: 'WebGPU', cpu: 'CPU' } as const;

/** Merges the finished run again on the other engine: same bytes or not, and the speed of each. */
export function VerifySection() {
  const studio = useStudio();
  const report = useStudioState((s) => currentRun(s)?.report ?? null);
  const why = useStudioState(whyNotVerify);
  const verifying = useStudioState((s) => s.job?.kind === 'verification');
  const result = useStudioState((s) =>
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
      {result && !verifying ? <Result result={result} /> : null}
    </Section>
  );
}

function Result({ result }: { result: Verification }) {
  const { first, second, differing, tensors } = result;
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
        items={[first, second].map(({ engine, seconds, bytes }) => [
          NAMES[engine],
          formatSeconds(seconds),
          `${formatRate(bytes / Math.max(seconds, 1e-3))} of output`,
        ])}
        wraps
      />
    </>
  );
}
