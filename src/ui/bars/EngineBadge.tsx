import { formatBytes } from '../../formats/quantity';
import type { WorkerInfo } from '../../reports/worker';
import { Message } from '../parts/Message';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Segmented } from '../parts/Segmented';
import { engineSummary } from '../state/engine-summary';
import type { BackendChoice } from '../state/studio-state';
import { useStudio, useStudioState } from '../studio-context';

/** Which engine computes, with its limits and why; opens to choose another. */
export function EngineBadge() {
  const engine = useStudioState((s) => s.engine);
  const summary = engineSummary(engine);
  return (
    <PopoverFrame
      label="Engine"
      trigger={
        <button type="button" className="badge" data-tone={summary.tone}>
          <span className="badge-dot" aria-hidden="true" />
          <span className="badge-kind">{summary.kind}</span>
          {summary.detail ? <span className="badge-detail"> · {summary.detail}</span> : null}
        </button>
      }
    >
      {engine.info ? <EngineDetail info={engine.info} choice={engine.choice} /> : null}
      {engine.error ? <Message tone="error" title={engine.error.message} hint={engine.error.hint} /> : null}
      {summary.notes.map((note) => (
        <Message key={note} tone="warning" title={note} />
      ))}
    </PopoverFrame>
  );
}

function EngineDetail({ info, choice }: { info: WorkerInfo; choice: BackendChoice }) {
  const studio = useStudio();
  const { webgpu, cpu, storage } = info;
  const noGpu = webgpu.available ? null : (webgpu.why ?? 'This browser has no WebGPU.');
  return (
    <>
      <Segmented<BackendChoice>
        label="Engine"
        value={choice}
        options={[
          { value: 'auto', label: 'Auto' },
          { value: 'webgpu', label: 'WebGPU', why: noGpu },
          { value: 'cpu', label: 'CPU' },
        ]}
        onChange={(next) => studio.store.setState((s) => ({ engine: { ...s.engine, choice: next } }))}
      />
      <dl className="facts">
        <div>
          <dt>Auto uses</dt>
          <dd>{info.auto === 'webgpu' ? 'WebGPU' : 'CPU'}</dd>
        </div>
        <div>
          <dt>GPU adapter</dt>
          <dd>{webgpu.available ? webgpu.adapter : 'none'}</dd>
        </div>
        {webgpu.available ? (
          <div>
            <dt>Largest buffer</dt>
            <dd>{formatBytes(webgpu.maxBufferBytes)}</dd>
          </div>
        ) : null}
        <div>
          <dt>CPU engine</dt>
          <dd>{cpu.adapter}</dd>
        </div>
        <div>
          <dt>Storage</dt>
          <dd>
            {storage.memoryBytes !== undefined
              ? `${formatBytes(storage.memoryBytes)} of memory, until the tab is closed`
              : storage.available
                ? 'in this browser'
                : 'none'}
          </dd>
        </div>
        <div>
          <dt>Amalgam</dt>
          <dd>{info.version}</dd>
        </div>
      </dl>
      <p className="small quiet">Both engines give the same result. Larger tensors are cut into tiles.</p>
    </>
  );
}
