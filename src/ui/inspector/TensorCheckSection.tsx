import { formatCount, formatCounted, formatReal, formatSeconds } from '../../formats/quantity';
import { Button } from '../parts/Button';
import { Fact } from '../parts/Fact';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { checkTensor, whyNotCheck } from '../state/tensor-check';
import { useStudio, useStudioState } from '../studio-context';

const NAMES = { webgpu: 'WebGPU', cpu: 'CPU' } as const;

/** Computes the tensor on both engines: largest difference, and the speed of each. */
export function TensorCheckSection({ name }: { name: string }) {
  const studio = useStudio();
  const why = useStudioState(whyNotCheck);
  const checking = useStudioState((s) => s.job?.kind === 'check');
  const report = useStudioState((s) =>
    s.tensorCheck?.recipe === s.recipe && s.tensorCheck.report.tensor === name ? s.tensorCheck.report : null,
  );
  return (
    <Section title="On both engines">
      {checking ? (
        <ToolBar kinds={['check']} />
      ) : (
        <div className="row">
          <Button why={why} onClick={() => void checkTensor(studio, name)}>
            Compute on both engines
          </Button>
        </div>
      )}
      {report && !checking ? (
        <>
          {report.differing === 0 ? (
            <Message
              tone="ok"
              live
              title={`All ${formatCount(report.elements)} elements have the same bits.`}
            />
          ) : (
            <Message
              tone="warning"
              live
              title={`${formatCounted(report.differing, 'element')} of ${formatCount(report.elements)} differ.`}
              hint={`The largest difference is ${formatReal(report.largest)}.`}
            />
          )}
          <dl className="facts">
            {report.engines.map(({ engine, seconds }) => (
              <Fact key={engine} label={NAMES[engine]} value={formatSeconds(seconds)} />
            ))}
          </dl>
        </>
      ) : null}
    </Section>
  );
}
