import '../styles/add-model.css';
import '../styles/tools.css';
import { useEffect, useId } from 'react';
import { formatBytes, formatCounted, formatSeconds } from '../../formats/quantity';
import type { PushReport } from '../../reports/push';
import { HubSettings } from '../add-model/HubSettings';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { Message } from '../parts/Message';
import { Section } from '../parts/Section';
import { Segmented } from '../parts/Segmented';
import { named, Select } from '../parts/Select';
import { ToolBar } from '../parts/ToolBar';
import { currentRun } from '../state/runs';
import { editSlice } from '../state/studio';
import { recallScores } from '../state/task-scores';
import { useAnswer, useStudio, useStudioState } from '../studio-context';
import {
  editPushTarget,
  loadAccount,
  type Pushable,
  proposedRepo,
  push,
  pushables,
  pushReplacing,
  scoresOfOutput,
  whyNotPush,
} from './push-actions';

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
  const isReady = useStudioState((s) => s.engine.info !== null);
  const outputId = useId();
  useEffect(() => {
    if (isReady) void recallScores(studio);
  }, [studio, isReady]);
  // another token or another hub is another account: the state of the hub changes with either
  useEffect(() => {
    if (hub.hasToken && hub.online) void loadAccount(studio);
    else if (!hub.hasToken) editSlice(studio, 'push', { account: null });
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
            options={[
              { value: 'private', label: 'Private' },
              { value: 'public', label: 'Public' },
            ]}
            onChange={(value) => editPushTarget(studio, { private: value === 'private' })}
          />
          <span className="spacer" />
          {state.status === 'asking' ? null : (
            <Button
              type="submit"
              className="strong"
              why={why}
              onClick={() => void push(studio, output, repo)}
            >
              {state.status === 'looking' ? 'Looking…' : 'Push'}
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
          live
        >
          <ul className="mono small push-taken" aria-label="Files that would be replaced">
            {state.target.taken.map((path) => (
              <li key={path}>{path}</li>
            ))}
          </ul>
          <div className="row message-actions">
            <Button why={why} onClick={() => void pushReplacing(studio, output)}>
              Replace these files
            </Button>
            <Button onClick={() => editSlice(studio, 'push', { status: 'idle', target: null })}>
              Cancel
            </Button>
          </div>
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
