import { useEffect } from 'react';
import { formatCount } from '../../formats/quantity';
import { blindOutcome, blindWords, type BlindTest as Test } from '../../reports/blind-test';
import { saveText } from '../local/local-files';
import { useTableRows } from '../measure/use-table-rows';
import { Button, LinkButton } from '../parts/Button';
import { Select } from '../parts/fields';
import { ErrorCard } from '../parts/Message';
import { targetKey } from '../state/evaluation-rows';
import {
  beginBlindTest,
  blindPrompts,
  editBlind,
  endBlindTest,
  vote,
  votedOn,
  whyNotTest,
} from '../state/generation';
import { useStudio, useStudioState } from '../studio-context';
import { GenerationForm } from './GenerationForm';

/** Two models answer some prompts; who was preferred is known after the last vote. */
export function BlindTest() {
  const test = useStudioState((s) => s.generation.blind.test);
  return test ? <Ballot test={test} /> : <Setup />;
}

function Setup() {
  const studio = useStudio();
  const { pair, error, tests } = useStudioState((s) => s.generation.blind);
  const prompts = useStudioState(blindPrompts);
  const rows = useTableRows();
  const [a, b] = pair.map((id) => rows.find((row) => row.id === id));
  const why = useStudioState((s) => whyNotTest(s, [a, b]));
  const options = rows.map(({ id, label }) => ({ value: id, label }));
  const keys = new Set(rows.map(({ target }) => targetKey(target)));
  const known = tests.filter(({ models }) => models.some(({ target }) => keys.has(targetKey(target))));
  return (
    <>
      <GenerationForm
        begin="Begin"
        why={why}
        onBegin={() => a && b && void beginBlindTest(studio, [a, b])}
        prompt={
          <textarea
            className="field mono prompt grow"
            rows={10}
            aria-label="Prompts, one a line"
            value={prompts}
            onChange={(event) => editBlind(studio, { prompts: event.target.value })}
          />
        }
      >
        {[a, b].map((row, i) => (
          <Select
            // biome-ignore lint/suspicious/noArrayIndexKey: the two keep their places
            key={i}
            className="field"
            aria-label={i === 0 ? 'One model' : 'The other model'}
            value={row?.id ?? ''}
            options={row ? options : [{ value: '', label: 'choose' }, ...options]}
            onChange={(id) => editBlind(studio, { pair: i === 0 ? [id, pair[1]] : [pair[0], id] })}
          />
        ))}
      </GenerationForm>
      <p className="small quiet">
        You see two answers at a time, in random order and without names, and vote.
      </p>
      {error ? <ErrorCard error={error} /> : null}
      <div className="stack" role="status">
        {known.map((own) => (
          <p key={own.at}>
            {blindWords(own)} <span className="small quiet">{new Date(own.at).toLocaleString()}</span>{' '}
            <LinkButton className="small" onClick={() => exportTest(own)}>
              Export as JSON
            </LinkButton>
          </p>
        ))}
      </div>
    </>
  );
}

function exportTest(test: Test): void {
  saveText(JSON.stringify({ ...test, outcome: blindOutcome(test) }, null, 2), `blind-test-${test.at}.json`);
}

/** Keys of the votes, as they stand on the buttons. */
const VOTES = [
  { key: '1', words: 'The first is better', place: 0 },
  { key: '2', words: 'The second is better', place: 1 },
  { key: '0', words: 'Neither', place: 'neither' },
] as const;

function Ballot({ test }: { test: Test }) {
  const studio = useStudio();
  const at = votedOn(test);
  const { prompt, answers, first } = test.prompts[at]!;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target, key, ctrlKey, metaKey, altKey, repeat } = event;
      const isField =
        target instanceof HTMLElement && target.closest('input, textarea, select, [role=dialog]');
      const chosen = VOTES.find((own) => own.key === key);
      if (!chosen || isField || ctrlKey || metaKey || altKey || repeat) return;
      event.preventDefault();
      vote(studio, chosen.place);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [studio]);
  return (
    <>
      <p role="status">
        Prompt {formatCount(at + 1)} of {formatCount(test.prompts.length)}.{' '}
        <LinkButton className="small" onClick={() => endBlindTest(studio)}>
          End with the votes so far
        </LinkButton>
      </p>
      <div className="columns written">
        {[answers[first], answers[1 - first]].map((answer, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the answers have no names
          <article key={i} className="stack written-column panel" aria-label={`Answer ${i + 1}`}>
            <p className="written-text">
              <span className="faint">{test.settings.chat ? `${prompt}\n\n` : prompt}</span>
              {answer}
            </p>
          </article>
        ))}
      </div>
      <div className="row wrap apart">
        {VOTES.map(({ key, words, place }) => (
          <Button key={key} aria-keyshortcuts={key} onClick={() => vote(studio, place)}>
            <kbd>{key}</kbd> {words}
          </Button>
        ))}
      </div>
    </>
  );
}
