/** The engine in a few words, with its limits. Pure. */
import { formatBytes } from '../../formats/quantity';
import type { EngineSlice } from './studio-state';

interface EngineSummary {
  tone: 'ok' | 'warn' | 'bad' | 'wait';
  /** `WebGPU` or `CPU`. */
  kind: string;
  /** `Apple M3 · 4.29 GB buffers`. */
  detail: string;
  /** Missing or slow features, in sentences. */
  notes: string[];
}

/** Words for a failed engine: it never ran, or it ran until it stopped. */
export function whyNoEngine({ info }: EngineSlice): string {
  return info ? 'The engine stopped.' : 'The engine did not start.';
}

/** Why nothing can be computed on another engine too, or null. */
export function whyOneEngine({ engine: { info } }: { engine: EngineSlice }): string | null {
  return info?.webgpu.available === false
    ? `There is no other engine here: ${info.webgpu.why ?? 'this browser has no WebGPU.'}`
    : null;
}

export function engineSummary({ status, info, choice }: EngineSlice): EngineSummary {
  if (status === 'failed') {
    return { tone: 'bad', kind: info ? 'Stopped' : 'No engine', detail: '', notes: [] };
  }
  if (!info) return { tone: 'wait', kind: 'Starting', detail: '', notes: [] };
  const { webgpu, cpu, storage } = info;
  const kind = choice === 'auto' ? info.auto : choice;
  const notes: string[] = [];
  if (kind === 'cpu' && choice === 'auto') {
    const why = webgpu.available
      ? `The GPU adapter (${webgpu.adapter}) is a software one`
      : (webgpu.why ?? 'This browser has no WebGPU').replace(/\.$/, '');
    notes.push(`${why}: merges run on the CPU engine. Same result, more time.`);
  }
  if (kind === 'webgpu' && webgpu.isFallback) {
    notes.push(
      `${webgpu.adapter} is a software adapter: WebGPU works here, but on the processor and slowly.`,
    );
  }
  if (!storage.available) {
    const why = (storage.why ?? 'This browser offers no private storage').replace(/\.$/, '');
    notes.push(
      `${why}: models from the Hub and saving as downloads do not work. The sample, local models and saving to a folder do.`,
    );
  }
  const detail =
    kind === 'webgpu' ? `${webgpu.adapter} · ${formatBytes(webgpu.maxBufferBytes)} buffers` : cpu.adapter;
  return {
    tone: notes.length > 0 ? 'warn' : 'ok',
    kind: kind === 'webgpu' ? 'WebGPU' : 'CPU',
    detail,
    notes,
  };
}
