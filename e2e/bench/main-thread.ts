/** Work of a page's main thread, from a trace of Chromium: processor time, not time on the clock. */
import { writeFile } from 'node:fs/promises';
import type { CDPSession } from 'playwright';

interface TraceEvent {
  name: string;
  /** `X`: complete, with duration. */
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds on the clock. */
  ts: number;
  dur?: number;
  /** Microseconds of the thread's own processor time. */
  tdur?: number;
  args?: { name?: string; data?: { type?: string } };
}

export type Part = 'script' | 'style' | 'layout' | 'paint' | 'collection' | 'other';

/** Milliseconds of processor time, by what they went into. */
export type Parts = Record<Part, number>;

export interface MainThread {
  /** Work from each key to the next, the last up to the end. */
  steps: Parts[];
  /** Milliseconds of every task, the longest first. */
  tasks: number[];
}

const CATEGORIES = ['devtools.timeline', 'toplevel', 'v8.execute', 'blink.user_timing'];
const TASK = 'ThreadControllerImpl::RunTask';

const PARTS: ReadonlyMap<string, Part> = new Map([
  ...[
    'FunctionCall',
    'EvaluateScript',
    'EventDispatch',
    'TimerFire',
    'RunMicrotasks',
    'FireAnimationFrame',
  ].map((name) => [name, 'script'] as const),
  ...['UpdateLayoutTree', 'ParseAuthorStyleSheet'].map((name) => [name, 'style'] as const),
  ...['Layout', 'HitTest'].map((name) => [name, 'layout'] as const),
  ...['PrePaint', 'Paint', 'Layerize', 'Commit'].map((name) => [name, 'paint'] as const),
  ...['MinorGC', 'MajorGC'].map((name) => [name, 'collection'] as const),
]);

/** Starts a trace; the returned function ends it and, where a file is named, saves it for DevTools. */
export async function startTrace(cdp: CDPSession): Promise<(file?: string) => Promise<MainThread>> {
  const events: TraceEvent[] = [];
  const collect = ({ value }: { value: object[] }) => {
    for (const event of value) events.push(event as TraceEvent);
  };
  cdp.on('Tracing.dataCollected', collect);
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: CATEGORIES },
  });
  return async (file) => {
    const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
    await cdp.send('Tracing.end');
    await complete;
    cdp.off('Tracing.dataCollected', collect);
    if (file !== undefined) await writeFile(file, JSON.stringify({ traceEvents: events }));
    return mainThread(events);
  };
}

/** Adds up the busiest main thread of a trace. */
function mainThread(events: readonly TraceEvent[]): MainThread {
  const threads = events
    .filter((e) => e.name === 'thread_name' && e.args?.name === 'CrRendererMain')
    .map(({ pid, tid }) => events.filter((e) => e.pid === pid && e.tid === tid && e.ph === 'X'))
    .sort((a, b) => b.length - a.length);
  const thread = (threads[0] ?? []).sort((a, b) => a.ts - b.ts || (b.dur ?? 0) - (a.dur ?? 0));
  const keys = thread.filter((e) => e.name === 'EventDispatch' && e.args?.data?.type === 'keydown');
  const found: MainThread = { steps: [], tasks: [] };
  let parts = none(); // before the first key
  const open: { end: number; part: Part }[] = [];
  for (const event of thread) {
    while (open.length > 0 && open.at(-1)!.end <= event.ts) open.pop();
    const around = open.at(-1);
    if (!around && event.name !== TASK) continue;
    const end = event.ts + (event.dur ?? 0);
    if (!around && keys[found.steps.length] && keys[found.steps.length]!.ts < end) {
      parts = none();
      found.steps.push(parts);
    }
    const own = (event.tdur ?? 0) / 1000;
    const part = PARTS.get(event.name) ?? around?.part ?? 'other';
    parts[part] += own;
    if (around) parts[around.part] -= own;
    else found.tasks.push(own);
    open.push({ end, part });
  }
  found.tasks.sort((a, b) => b - a);
  return found;
}

function none(): Parts {
  return { script: 0, style: 0, layout: 0, paint: 0, collection: 0, other: 0 };
}

/** All parts together. */
export function sum(parts: Parts): number {
  return Object.values(parts).reduce((a, b) => a + b, 0);
}
