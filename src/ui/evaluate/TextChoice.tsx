import { useMemo, useRef, useState } from 'react';
import { formatBytes } from '../format/quantity';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { CheckIcon, CloseIcon, FolderIcon, PlusIcon } from '../parts/icons';
import { addText, addTextFiles, chooseText, openSampleTexts, removeText } from '../state/evaluation';
import type { EvaluationText } from '../state/evaluation-facts';
import { useFacts, useStudio } from '../studio-context';
import { DatasetText } from './DatasetText';

/** Which texts are columns: the sample's as toggles, pasted ones, files, datasets of the Hub. */
export function TextChoice() {
  const studio = useStudio();
  const texts = useFacts((s) => s.evaluation.texts);
  const opening = useFacts((s) => s.evaluation.opening);
  const error = useFacts((s) => s.evaluation.openError);
  const busy = useFacts((s) => s.evaluation.job !== null);
  const [adding, setAdding] = useState<'paste' | 'dataset' | null>(null);
  const toggle = (what: 'paste' | 'dataset') => setAdding(adding === what ? null : what);
  const files = useRef<HTMLInputElement>(null);
  return (
    <div className="stack">
      <fieldset className="text-choice">
        <legend className="visually-hidden">Texts to measure on</legend>
        {texts.map((text) => (
          <TextToggle key={text.id} text={text} busy={busy} />
        ))}
        {opening === 'opening' ? <span className="small quiet">Opening the sample texts…</span> : null}
        <Button variant="quiet" aria-expanded={adding === 'paste'} onClick={() => toggle('paste')}>
          <PlusIcon /> Paste text
        </Button>
        <Button variant="quiet" onClick={() => files.current?.click()}>
          <FolderIcon /> Open file
        </Button>
        <Button variant="quiet" aria-expanded={adding === 'dataset'} onClick={() => toggle('dataset')}>
          <PlusIcon /> Dataset
        </Button>
        <input
          ref={files}
          className="visually-hidden"
          type="file"
          multiple
          tabIndex={-1}
          aria-label="Text files"
          accept=".txt,.md,.jsonl,.ndjson,text/plain"
          onChange={({ currentTarget }) => {
            void addTextFiles(studio, [...(currentTarget.files ?? [])]);
            currentTarget.value = '';
          }}
        />
      </fieldset>
      {error ? (
        <div className="stack">
          <ErrorCard error={error} />
          <div>
            <Button onClick={() => void openSampleTexts(studio)}>Open the sample texts again</Button>
          </div>
        </div>
      ) : null}
      {adding === 'paste' ? <PasteText onDone={() => setAdding(null)} /> : null}
      {adding === 'dataset' ? <DatasetText onDone={() => setAdding(null)} /> : null}
    </div>
  );
}

function TextToggle({ text, busy }: { text: EvaluationText; busy: boolean }) {
  const studio = useStudio();
  const bytes = useMemo(() => new TextEncoder().encode(text.text).length, [text.text]);
  return (
    <span className="text-toggle" data-on={text.chosen || undefined}>
      <button
        type="button"
        aria-pressed={text.chosen}
        title={formatBytes(bytes)}
        onClick={() => chooseText(studio, text.id, !text.chosen)}
      >
        <span className="text-check">{text.chosen ? <CheckIcon /> : null}</span>
        <span className="truncate">{text.name}</span>
      </button>
      {text.origin === 'own' ? (
        <Button
          variant="quiet"
          iconOnly
          why={busy ? 'Measuring.' : null}
          aria-label={`Remove ${text.name}`}
          onClick={() => removeText(studio, text.id)}
        >
          <CloseIcon />
        </Button>
      ) : null}
    </span>
  );
}

function PasteText({ onDone }: { onDone: () => void }) {
  const studio = useStudio();
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const add = () => {
    void addText(studio, name.trim() || 'pasted', text);
    onDone();
  };
  return (
    <div className="paste-text">
      <textarea
        className="field"
        rows={5}
        aria-label="Text"
        placeholder="Paste a text that no model here was trained on."
        value={text}
        // biome-ignore lint/a11y/noAutofocus: it opens on request, to be pasted into.
        autoFocus
        onChange={(event) => setText(event.target.value)}
      />
      <div className="row wrap">
        <input
          className="field paste-name"
          aria-label="Name of the text"
          placeholder="Name, e.g. notes"
          value={name}
          maxLength={40}
          onChange={(event) => setName(event.target.value)}
        />
        <Button why={text.trim() === '' ? 'Paste a text first.' : null} onClick={add}>
          Add text
        </Button>
        <Button variant="quiet" onClick={onDone}>
          Never mind
        </Button>
      </div>
    </div>
  );
}
