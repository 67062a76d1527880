/** Actions of pushing an output to the Hub. */

import { errorReport } from '../../errors';
import type { Recipe } from '../../formats/recipe';
import type { PushSource } from '../../reports/push';
import { targetKey } from '../state/evaluation-rows';
import { runTool, whyNoTool } from '../state/job';
import { type PushSlice, tensorProgress } from '../state/job-state';
import { currentRun, finishedRuns, type RunState } from '../state/runs';
import { editSlice, type Studio } from '../state/studio';
import type { StudioState } from '../state/studio-state';
import { cardResults, scoresOf, scoreWords } from '../state/task-scores';

/** An output that can be pushed, as the user chooses it. */
export interface Pushable {
  name: string;
  source: PushSource;
}

/** Changes the output to push or its target, and drops the results for the former one. */
export function editPushTarget(
  studio: Studio,
  change: Partial<Pick<PushSlice, 'output' | 'repo' | 'private'>>,
): void {
  editSlice(studio, 'push', { ...change, status: 'idle', target: null, report: null, error: null });
}

/** Asks the hub whom the token belongs to. A failure is shown where the token was given. */
export async function loadAccount(studio: Studio): Promise<void> {
  try {
    editSlice(studio, 'push', { account: await studio.worker.hubAccount(), error: null });
  } catch (thrown) {
    editSlice(studio, 'push', { account: null, error: errorReport(thrown) });
  }
}

/**
 * Outputs that can be pushed: the last merge, wherever it is, and the finished outputs stored in this browser.
 * @param kept names of the finished outputs in the browser's storage
 * @param folder the picked folder, while its handle is there
 */
export function pushables(
  run: RunState | null,
  kept: readonly string[],
  folder: FileSystemDirectoryHandle | null,
): Pushable[] {
  const outputs: Pushable[] = kept.map((name) => ({ name, source: { kind: 'downloads', name } }));
  if (run?.status !== 'done') return outputs;
  const { name, kind } = run.destination;
  if (kind === 'downloads') {
    return [...outputs.filter((o) => o.name === name), ...outputs.filter((o) => o.name !== name)];
  }
  if (!folder || folder.name !== run.destination.folder) return outputs;
  const shards = run.report?.shards.map((s) => s.file) ?? [];
  const files = [...new Set([...shards, ...run.outputFiles])];
  return [{ name, source: { kind: 'folder', handle: folder, name, files } }, ...outputs];
}

/** `owner/output`, as far as the owner is known. */
export function proposedRepo(account: PushSlice['account'], output: string): string {
  const name = output
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/--+/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '');
  return account ? `${account.name}/${name}` : '';
}

/** Why nothing can be pushed now, or null. */
export function whyNotPush(state: StudioState, repo: string): string | null {
  if (!state.hub.hasToken) return 'Give an access token that may write first.';
  if (!state.hub.online) return 'This device is offline.';
  if (state.push.account && !state.push.account.mayWrite) {
    return state.hub.signedInAs === null
      ? 'This token can only read. Give one with write permission.'
      : 'You signed in with read access only. Sign out here and sign in again to push.';
  }
  if (!/^[^/\s]+\/[^/\s]+$/.test(repo)) return 'Name the repository as owner/name.';
  if (state.push.status === 'looking') return 'Looking at the repository…';
  return whyNoTool(state);
}

/** Looks at the repository first: where files would be replaced, the user is asked. Never rejects. */
export async function push(studio: Studio, { name, source }: Pushable, repo: string): Promise<void> {
  const state = studio.store.getState();
  if (whyNotPush(state, repo) !== null) return;
  editSlice(studio, 'push', {
    output: name,
    repo,
    status: 'looking',
    target: null,
    report: null,
    error: null,
  });
  try {
    const target = await studio.worker.pushTarget(repo, source);
    // the user may have changed the name meanwhile
    if (studio.store.getState().push.status !== 'looking') return;
    editSlice(studio, 'push', { target });
    if (target.taken.length > 0) editSlice(studio, 'push', { status: 'asking' });
    else await send(studio, { name, source }, repo, []);
  } catch (thrown) {
    editSlice(studio, 'push', { status: 'idle', error: errorReport(thrown) });
  }
}

/** The recipe of an output that was merged here, by its name. */
function recipeOf(state: StudioState, name: string): Recipe | undefined {
  const all = [currentRun(state), ...finishedRuns(state)];
  return all.find((run) => run?.status === 'done' && run.destination.name === name)?.report?.recipe;
}

/** Scores that the push adds to the model card of an output: `sample_trades acc 0.512 ± 0.072`, one for each task. */
export function scoresOfOutput(state: StudioState, name: string): string {
  const recipe = recipeOf(state, name);
  const words = recipe ? scoresOf(state.tasks.scores, targetKey({ recipe })).map(scoreWords) : [];
  return words.filter((one) => one !== null).join(', ');
}

/** Pushes after the user agreed to replace the files in the repository. Never rejects. */
export async function pushReplacing(studio: Studio, pushable: Pushable): Promise<void> {
  const { push: state } = studio.store.getState();
  if (state.status !== 'asking' || !state.target) return;
  await send(studio, pushable, state.target.repo, state.target.taken);
}

async function send(
  studio: Studio,
  { name, source }: Pushable,
  repo: string,
  replace: string[],
): Promise<void> {
  editSlice(studio, 'push', { status: 'pushing', error: null });
  const { push: own, tasks } = studio.store.getState();
  const recipe = recipeOf(studio.store.getState(), name);
  const results = recipe ? cardResults(tasks.scores, recipe) : [];
  const request = {
    ...{ source, repo, replace, private: own.private },
    summary: `${name}, merged with Amalgam`,
    ...(results.length > 0 ? { results } : {}),
  };
  const outcome = await runTool(
    studio,
    'push',
    (onProgress) => studio.worker.push(request, onProgress),
    tensorProgress,
  );
  editSlice(studio, 'push', {
    status: 'idle',
    target: null,
    ...('value' in outcome ? { report: outcome.value } : {}),
    ...('error' in outcome ? { error: outcome.error } : {}),
  });
}
