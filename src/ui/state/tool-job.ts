/** The long jobs of the tools beside the merge: comparing, extracting, collapsing, pushing. One at a time. */

import { type ErrorFacts, errorFacts } from '../../errors';
import type { CollapseProgress } from '../../reports/collapse';
import type { CompareProgress } from '../../reports/compare';
import type { PushProgress } from '../../reports/push';
import { whyNoEngine } from './engine-summary';
import type { StudioFacts, Tab } from './facts';
import { stayAwake } from './stay-awake';
import { notifyError, type Studio } from './studio';

export type ToolKind =
  | 'comparison'
  | 'extraction'
  | 'survey'
  | 'collapse'
  | 'push'
  | 'verification'
  | 'check';

export interface ToolJob {
  kind: ToolKind;
  progress: ToolProgress | null;
  cancelling: boolean;
}

export type ToolProgress =
  | Omit<CompareProgress, 'finished'>
  | Omit<CollapseProgress, 'finished'>
  | Omit<PushProgress, 'finished'>;

/** What a job is, while another button waits for it. */
export const TOOL_WORDS: Readonly<Record<ToolKind, { title: string; busy: string; tab: Tab }>> = {
  comparison: { title: 'Comparing', busy: 'Two models are being compared.', tab: 'compare' },
  extraction: { title: 'Extracting', busy: 'A LoRA is being extracted.', tab: 'compare' },
  survey: { title: 'Measuring layers', busy: 'Layers are being measured.', tab: 'collapse' },
  collapse: { title: 'Collapsing', busy: 'Layers are being collapsed.', tab: 'collapse' },
  push: { title: 'Pushing', busy: 'An output is being pushed to the Hub.', tab: 'output' },
  verification: { title: 'Verifying', busy: 'A merge is being verified.', tab: 'output' },
  check: { title: 'Computing a tensor', busy: 'A tensor is being computed on both engines.', tab: 'layers' },
};

/** Why no tool can start now, or null. */
export function whyNoTool({ engine, run, elsewhere, evaluation, generation, tool }: StudioFacts) {
  if (engine.status === 'failed') return whyNoEngine(engine);
  if (engine.status === 'starting') return 'Starting the engine…';
  if (tool) return tool.cancelling ? 'Cancelling…' : TOOL_WORDS[tool.kind].busy;
  if (run?.status === 'running' || run?.status === 'cancelling') {
    return 'A merge is running; the engine does one thing at a time.';
  }
  if (elsewhere) return 'A merge is running in another tab.';
  if (evaluation.job) return 'Models are being measured; the engine does one thing at a time.';
  if (generation.status !== 'idle') return 'Models are writing; the engine does one thing at a time.';
  return null;
}

/** How far a job is, in [0, 1]: by bytes, or by what it counts. */
export function toolShare({ progress }: ToolJob): number {
  if (!progress) return 0;
  const { bytes, bytesDone, tensors, tensorsDone } = progress;
  if (bytes > 0) return Math.min(1, bytesDone / bytes);
  return tensors > 0 ? Math.min(1, tensorsDone / tensors) : 0;
}

export type ToolOutcome<T> = { value: T } | { error: ErrorFacts } | { cancelled: true };

/** Runs a job of the engine as the studio's tool. Never rejects. */
export async function runTool<P extends { finished: unknown[] } & ToolProgress, T>(
  studio: Studio,
  kind: ToolKind,
  work: (onProgress: (progress: P) => void) => Promise<T>,
  onFinished: (finished: P['finished']) => void = () => {},
): Promise<ToolOutcome<T>> {
  studio.store.setState({ tool: { kind, progress: null, cancelling: false } });
  const release = stayAwake();
  try {
    const value = await work((progress) => {
      studio.store.setState(({ tool }) => (tool?.kind === kind ? { tool: { ...tool, progress } } : {}));
      if (progress.finished.length > 0) onFinished(progress.finished);
    });
    return { value };
  } catch (thrown) {
    const error = errorFacts(thrown);
    return error.code === 'Cancelled' ? { cancelled: true } : { error };
  } finally {
    studio.store.setState({ tool: null });
    release();
  }
}

/** Asks the engine to stop; the job ends once it has cleaned up. */
export async function cancelTool(studio: Studio): Promise<void> {
  const { tool } = studio.store.getState();
  if (!tool || tool.cancelling) return;
  studio.store.setState({ tool: { ...tool, cancelling: true } });
  try {
    await studio.engine.cancel();
  } catch (thrown) {
    notifyError(studio, thrown);
  }
}
