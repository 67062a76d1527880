/** Choosing models for the tools, filling in their forms, and beginning their jobs. */
import { errorReport } from '../../errors';
import type { ProgressOf, ReportOf, RequestOf, ToolCall, ToolId, ToolValues } from '../../tools';
import { ended, runTool, whyNoTool } from './job';
import { type SavedFile, type SavedOutput, type ToolJob, type ToolsSlice, tensorProgress } from './job-state';
import { chooseDestination, type NamedDestination } from './run';
import type { Studio, StudioState } from './studio';

export function chooseToolModels(studio: Studio, change: Partial<ToolsSlice['models']>): void {
  studio.store.setState(({ tools }) => ({ tools: { ...tools, models: { ...tools.models, ...change } } }));
}

/** Fills in a tool's form. */
export function editTool<T extends ToolId>(studio: Studio, id: T, change: Partial<ToolValues[T]>): void {
  studio.store.setState(({ tools }) => ({
    tools: { ...tools, values: { ...tools.values, [id]: { ...tools.values[id], ...change } } },
  }));
}

/** What a report says of the files that were written; nothing of a job that writes none. */
interface Wrote {
  files?: readonly (string | { file: string; bytes: number; hash?: string })[];
  /** Those of `files` whose bytes and hash are known. */
  shards?: readonly { file: string; bytes: number; hash: string }[];
}

function writtenFiles({ files = [], shards = [] }: Wrote): SavedFile[] {
  return files.map((one) => {
    const { file: name, ...known } = typeof one === 'string' ? { file: one } : one;
    return { name, ...known, ...shards.find(({ file }) => file === name) };
  });
}

type Asked<K extends ToolCall> = Omit<RequestOf<K>, 'engine' | 'destination'>;

/**
 * Begins a tool's job where nothing else is at work, asks for a folder where one is to be picked, follows it, and keeps
 * what it ended with. Never rejects.
 */
export async function beginTool<K extends ToolCall>(
  studio: Studio,
  kind: K,
  asked: Asked<K>,
  /** Of its output; absent where it writes none. */
  name?: string,
): Promise<void> {
  const state = studio.store.getState();
  if (whyNoTool(state) !== null) return;
  const started = { status: 'running', finished: [], report: null, saved: null, error: null } as const;
  let request = { ...asked, engine: state.engine.choice } as unknown as RequestOf<K>;
  try {
    const destination = name === undefined ? null : await chooseDestination(studio, name);
    if (name !== undefined && !destination) return;
    if (destination) request = { ...request, destination };
    setJob(studio, kind, { ...started, request });
    const call = studio.worker[kind] as (
      request: RequestOf<K>,
      onProgress: (progress: ProgressOf<K>) => void,
    ) => Promise<ReportOf<K>>;
    const outcome = await runTool<ProgressOf<K>, ReportOf<K>>(
      studio,
      kind,
      (onProgress) => call(request, onProgress),
      tensorProgress,
      ({ finished }) => {
        if (finished.length > 0)
          editJob(studio, kind, (job) => ({ ...job, finished: [...job.finished, ...finished] }));
      },
    );
    const files = 'value' in outcome ? writtenFiles(outcome.value as Wrote) : [];
    const saved = destination && files.length > 0 ? savedOutput(destination, files) : null;
    editJob(studio, kind, (job) => ({ ...job, saved, ...ended(outcome) }));
  } catch (thrown) {
    setJob(studio, kind, { ...started, request, status: 'failed', error: errorReport(thrown) });
  }
}

function setJob<K extends ToolCall>(studio: Studio, kind: K, job: ToolJob<K>): void {
  studio.store.setState(({ tools }) => ({ tools: { ...tools, jobs: { ...tools.jobs, [kind]: job } } }));
}

function editJob<K extends ToolCall>(studio: Studio, kind: K, edit: (job: ToolJob<K>) => ToolJob<K>): void {
  const job = studio.store.getState().tools.jobs[kind] as ToolJob<K> | undefined;
  if (job) setJob(studio, kind, edit(job));
}

function savedOutput(destination: NamedDestination, files: SavedFile[]): SavedOutput {
  const { kind, name } = destination;
  return { kind, name, folder: destination.kind === 'folder' ? destination.handle.name : null, files };
}

/** Why nothing can be saved where the user wants it, or null. */
export function whyNotSaved({ output, engine }: StudioState): string | null {
  const storage = engine.info?.storage;
  if (output.kind === 'folder' || !storage || storage.available) return null;
  return 'This browser offers no storage to keep files in: save to a folder instead.';
}
