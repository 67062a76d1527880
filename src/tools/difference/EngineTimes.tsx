import { formatReal, formatSeconds } from '../../formats/quantity';
import type { EngineTiming } from './report';
import { Section } from '../../ui/parts/Section';

/** Both engines over the same tensors: seconds as bars, the speed-up, and by how much they disagree. */
export function EngineTimes({ timing }: { timing: EngineTiming }) {
  const { webgpu, cpu, speedUp, maxDisagreement } = timing;
  const longest = Math.max(webgpu, cpu, 1e-9);
  const faster = speedUp >= 1;
  return (
    <Section title="Tensor by tensor" className="engine-times">
      <dl>
        {(
          [
            ['WebGPU', webgpu],
            ['CPU, WebAssembly', cpu],
          ] as const
        ).map(([name, seconds]) => (
          <div key={name} className="engine-time">
            <dt>{name}</dt>
            <dd className="engine-bar" aria-hidden="true">
              <span className="bar-fill" style={{ width: `${(100 * seconds) / longest}%` }} />
            </dd>
            <dd className="numeric">{formatSeconds(seconds)}</dd>
          </div>
        ))}
      </dl>
      <p>
        {faster ? 'WebGPU' : 'The CPU'} is {formatReal(faster ? speedUp : 1 / speedUp)} times as fast here.{' '}
        {maxDisagreement === 0
          ? 'Both engines agree to the last bit.'
          : `Their sums differ by at most ${formatReal(maxDisagreement)} of their size.`}
      </p>
      <p className="small quiet">Upload, kernels and readback; reading the files is not counted.</p>
    </Section>
  );
}
