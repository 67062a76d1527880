import '../styles/dialogs.css';
import '../styles/tools.css';
import { useEffect, useId } from 'react';
import { errorReport } from '../../errors';
import { formatBytes, formatCounted, formatSeconds } from '../../formats/quantity';
import type { Recipe } from '../../formats/recipe';
import type { PushReport, PushSource } from '../../reports/push';
import { HubSettings } from '../add-model/HubSettings';
import { Button } from '../parts/Button';
import { choices, named, Segmented, Select } from '../parts/fields';
import { ErrorCard, Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { ToolBar } from '../parts/ToolBar';
import { runTool, whyNoTool } from '../state/job';
import { type PushSlice, tensorProgress } from '../state/job-state';
import { recallCells } from '../state/measure';
import { cardResults, scoresOf, scoreWords } from '../state/measure-tasks';
import { currentRun, finishedRuns, type RunState } from '../state/runs';
import { askHub, editSlice, neverMind, type Studio, type StudioState } from '../state/studio';
import { useAnswer, useReady, useStudio, useStudioState } from '../studio-context';

/** A finished output to a model repository on the Hub. Not there while nothing is finished. */
export function PushSection() {
  const outputs = usePushables();
  const chosen = useStudioState((s) => s.push.output);
  const output = outputs.find((o) => o.name === chosen) ?? outputs[0];
  return output ? <Push outputs={outputs} output={output} /> : null;
}

function Push({ outputs, output }: { outputs: readonly Pushable[]; output: Pushable }) {
  const studio = useStudio();
  const state = useStudioState((s) => s.push);
  const hub = useStudioState((s) => s.hub);
  const repo = state.repo ?? proposedRepo(state.account, output.name);
  const why = useStudioState((s) => whyNotPush(s, repo));
  const scores = useStudioState((s) => scoresOfOutput(s, output.name));
  const outputId = useId();
  useReady(recallCells);
  // another token or another hub is another account: the state of the hub changes with either
  useEffect(() => {
    if (hub.hasToken && hub.online) void loadAccount(studio);
    else if (!hub.hasToken) editSlice(studio, 'push', { account: null });
    return () => neverMind(studio, ACCOUNT);
  }, [studio, hub]);
  return (
    <Section
      title="Push to the Hub"
      className="push"
      aside={
        state.account ? (
          <span className="small quiet truncate">
            as {state.account.name}
            {state.account.mayWrite ? '' : ', read only'}
          </span>
        ) : null
      }
    >
      <HubSettings toPush />
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (why === null && state.status === 'idle') void push(studio, output, repo);
        }}
      >
        {outputs.length > 1 ? (
          <div className="labeled">
            <label htmlFor={outputId}>Output</label>
            <Select
              id={outputId}
              value={output.name}
              options={named(outputs.map(({ name }) => name))}
              onChange={(name) => editPushTarget(studio, { output: name })}
            />
          </div>
        ) : null}
        <label className="labeled">
          <span>Repository</span>
          <input
            className="field mono"
            spellCheck={false}
            autoComplete="off"
            placeholder="owner/name"
            value={repo}
            onChange={(event) => editPushTarget(studio, { repo: event.target.value.trim() })}
          />
        </label>
        <div className="row wrap">
          <Segmented
            label="Who may see a new repository"
            value={state.private ? 'private' : 'public'}
            options={choices({ private: 'Private', public: 'Public' })}
            onChange={(value) => editPushTarget(studio, { private: value === 'private' })}
          />
          <span className="spacer" />
          {state.status === 'looking' ? (
            <>
              <span className="small quiet" role="status">
                Looking at the repository…
              </span>
              <Button onClick={() => editPushTarget(studio, {})}>Cancel</Button>
            </>
          ) : state.status === 'asking' ? null : (
            <Button
              type="submit"
              className="strong"
              why={why}
              onClick={() => void push(studio, output, repo)}
            >
              Push
            </Button>
          )}
        </div>
      </form>
      <p className="small quiet">
        The repository is created if it is missing; one that exists stays as private or public as it is.
        Everything arrives as one commit at the end: until then nothing of it can be seen.
        {scores === '' ? '' : ` Its model card says what it scored: ${scores}.`}
      </p>
      {state.status === 'asking' && state.target ? (
        <Message
          tone="warning"
          title={`${state.target.repo} already has ${formatCounted(state.target.taken.length, 'file')} of this output`}
          hint="Replacing them keeps the earlier versions in the history of the repository. Other files there stay."
          actions={
            <>
              <Button why={why} onClick={() => void pushReplacing(studio, output)}>
                Replace these files
              </Button>
              <Button onClick={() => editSlice(studio, 'push', { status: 'idle', target: null })}>
                Cancel
              </Button>
            </>
          }
          live
        >
          <ul className="mono small scroll problem-tensors" aria-label="Files that would be replaced">
            {state.target.taken.map((path) => (
              <li key={path}>{path}</li>
            ))}
          </ul>
        </Message>
      ) : null}
      <ToolBar kinds={['push']} />
      {state.error ? <ErrorCard error={state.error} /> : null}
      {state.report ? <Pushed report={state.report} /> : null}
    </Section>
  );
}

function Pushed({ report }: { report: PushReport }) {
  const sent = report.files.filter((f) => f.sent);
  const bytes = sent.reduce((sum, f) => sum + f.bytes, 0);
  const known = report.files.length - sent.length;
  return (
    <Message
      tone="ok"
      title={
        <>
          Pushed to{' '}
          <a className="link" href={`${report.page}/tree/${report.commit}`} target="_blank" rel="noreferrer">
            {report.repo}
          </a>
        </>
      }
      hint={`${formatCounted(report.files.length, 'file')} in commit ${report.commit.slice(0, 12)}${
        report.created ? ' of a new repository' : ''
      }, ${formatSeconds(report.seconds)}. ${formatBytes(bytes)} of weights were sent${
        known > 0 ? '; the rest is small or was there already' : ''
      }.`}
      live
    />
  );
}

/** Outputs that can be pushed; those in the browser's storage are asked for again whenever a run ends. */
function usePushables(): Pushable[] {
  const studio = useStudio();
  const run = useStudioState(currentRun);
  const usable = useStudioState((s) => s.engine.info?.storage.available === true);
  const [stored] = useAnswer<string[]>(
    [],
    async (worker) =>
      usable ? (await worker.cache()).outputs.filter((o) => o.complete).map((o) => o.name) : [],
    [usable, run?.status],
  );
  return pushables(run, stored, studio.transient.folder);
}

// Actions of pushing an output to the Hub.

/** An output that can be pushed, as the user chooses it. */
interface Pushable {
  name: string;
  source: PushSource;
}

/** Changes the output to push or its target, and drops the results for the former one. */
function editPushTarget(
  studio: Studio,
  change: Partial<Pick<PushSlice, 'output' | 'repo' | 'private'>>,
): void {
  neverMind(studio, TARGET);
  editSlice(studio, 'push', { ...change, status: 'idle', target: null, report: null, error: null });
}

/** What the hub is asked for: whom the token belongs to, and what lies where the output is to go. */
const [ACCOUNT, TARGET] = ['account', 'push target'];

/** Asks the hub whom the token belongs to. A failure is shown where the token was given. */
async function loadAccount(studio: Studio): Promise<void> {
  await askHub(studio, ACCOUNT, async (signal) => {
    try {
      editSlice(studio, 'push', { account: await studio.worker.hubAccount(signal), error: null });
    } catch (thrown) {
      if (!signal.aborted) editSlice(studio, 'push', { account: null, error: errorReport(thrown) });
    }
  });
}

/**
 * Outputs that can be pushed: the last merge, wherever it is, and the finished outputs stored in this browser.
 * @param kept names of the finished outputs in the browser's storage
 * @param folder the picked folder, while its handle is there
 */
function pushables(
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
function proposedRepo(account: PushSlice['account'], output: string): string {
  const name = output
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/--+/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '');
  return account ? `${account.name}/${name}` : '';
}

/** Why nothing can be pushed now, or null. */
function whyNotPush(state: StudioState, repo: string): string | null {
  if (!state.hub.hasToken) return 'Give an access token that may write first.';
  if (!state.hub.online) return 'This device is offline.';
  if (state.push.account && !state.push.account.mayWrite) {
    return state.hub.signedInAs === null
      ? 'This token can only read. Give one with write permission.'
      : 'You signed in with read access only. Sign out here and sign in again to push.';
  }
  if (!/^[^/\s]+\/[^/\s]+$/.test(repo)) return 'Name the repository as owner/name.';
  return whyNoTool(state);
}

/** Looks at the repository first: where files would be replaced, the user is asked. Never rejects. */
async function push(studio: Studio, { name, source }: Pushable, repo: string): Promise<void> {
  const state = studio.store.getState();
  if (whyNotPush(state, repo) !== null) return;
  editPushTarget(studio, { output: name, repo });
  editSlice(studio, 'push', { status: 'looking' });
  const target = await askHub(studio, TARGET, (signal) =>
    studio.worker.pushTarget(repo, source, signal).catch((thrown: unknown) => {
      if (!signal.aborted) editSlice(studio, 'push', { status: 'idle', error: errorReport(thrown) });
    }),
  );
  if (!target || studio.store.getState().push.status !== 'looking') return;
  editSlice(studio, 'push', { target });
  if (target.taken.length > 0) editSlice(studio, 'push', { status: 'asking' });
  else await send(studio, { name, source }, repo, []);
}

/** The recipe of an output that was merged here, by its name. */
function recipeOf(state: StudioState, name: string): Recipe | undefined {
  const all = [currentRun(state), ...finishedRuns(state)];
  return all.find((run) => run?.status === 'done' && run.destination.name === name)?.report?.recipe;
}

/** Scores that the push adds to the model card of an output: `sample_trades acc 0.512 ± 0.072`, one for each task. */
function scoresOfOutput(state: StudioState, name: string): string {
  const recipe = recipeOf(state, name);
  const words = recipe ? scoresOf(state.measure, recipe).map(scoreWords) : [];
  return words.filter((one) => one !== null).join(', ');
}

/** Pushes after the user agreed to replace the files in the repository. Never rejects. */
async function pushReplacing(studio: Studio, pushable: Pushable): Promise<void> {
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
  const { push: own, measure } = studio.store.getState();
  const recipe = recipeOf(studio.store.getState(), name);
  const results = recipe ? cardResults(measure, recipe) : [];
  const request = {
    ...{ source, repo, replace, private: own.private },
    summary: `${name}, merged with Amalgam`,
    studio: `${location.origin}${location.pathname}`,
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
