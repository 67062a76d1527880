import '../styles/measure.css';
import { useState } from 'react';
import { formatBytes, formatCounted } from '../../formats/quantity';
import type { DatasetColumns, DatasetInfo } from '../../reports/dataset';
import { Button, FileButton, FolderIcon, PlusIcon } from '../parts/Button';
import { NumberField, Select } from '../parts/fields';
import { useAttempt } from '../parts/hooks';
import { ErrorCard } from '../parts/Message';
import { whyBusy } from '../state/job';
import { addTextFiles } from '../state/measure-texts';
import { useStudio, useStudioState } from '../studio-context';

interface AddTextProps {
  take: TakeText;
  /** Several files at once. */
  multiple?: boolean;
}

/** Where a text can come from: pasted, from files, from a dataset of the Hub. The buttons, and below them what is open. */
export function AddText({ take, multiple = false }: AddTextProps) {
  const studio = useStudio();
  const [adding, setAdding] = useState<'paste' | 'dataset' | null>(null);
  const toggle = (what: 'paste' | 'dataset') => setAdding(adding === what ? null : what);
  return (
    <>
      <Button
        icon={PlusIcon}
        variant="quiet"
        aria-expanded={adding === 'paste'}
        onClick={() => toggle('paste')}
      >
        Paste text
      </Button>
      <FileButton
        icon={FolderIcon}
        variant="quiet"
        label={multiple ? 'Text files' : 'Text file'}
        multiple={multiple}
        accept=".txt,.md,.jsonl,.ndjson,text/plain"
        onFiles={(picked) =>
          void addTextFiles(
            studio,
            picked.map(({ file }) => file),
            take,
          )
        }
      >
        Open file
      </FileButton>
      <Button
        icon={PlusIcon}
        variant="quiet"
        aria-expanded={adding === 'dataset'}
        onClick={() => toggle('dataset')}
      >
        Dataset
      </Button>
      {adding === 'paste' ? <PasteText take={take} onDone={() => setAdding(null)} /> : null}
      {adding === 'dataset' ? <DatasetText take={take} onDone={() => setAdding(null)} /> : null}
    </>
  );
}

function PasteText({ take, onDone }: { take: TakeText; onDone: () => void }) {
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const add = () => {
    void take(name.trim() || 'pasted', text);
    onDone();
  };
  return (
    <div className="stack paste-text">
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
          Cancel
        </Button>
      </div>
    </div>
  );
}

const CHARACTERS = 200_000;

/** A dataset on the Hub → one of its files → a column → a text. Each step shows when the one before is done. */
export function DatasetText({ take, onDone }: { take: TakeText; onDone: () => void }) {
  const studio = useStudio();
  const busy = useStudioState((s) => whyBusy(s)?.why ?? null);
  const [id, setId] = useState('');
  const [dataset, setDataset] = useState<DatasetInfo | null>(null);
  const [path, setPath] = useState('');
  const [columns, setColumns] = useState<DatasetColumns | null>(null);
  const [column, setColumn] = useState('');
  const [characters, setCharacters] = useState(CHARACTERS);
  const [share, setShare] = useState<number | null>(null);
  const { working, error, attempt } = useAttempt<'open' | 'columns' | 'read'>();
  const open = () =>
    attempt('open', async (signal) => {
      setDataset(null);
      setPath('');
      setColumns(null);
      setDataset(await studio.worker.openDataset(id, signal));
    });
  const choose = (ref: string, chosen: string) => {
    setPath(chosen);
    setColumns(null);
    if (chosen === '') return;
    void attempt('columns', async (signal) => {
      const found = await studio.worker.datasetColumns(ref, chosen, signal);
      setColumns(found);
      setColumn(found.columns.includes('text') ? 'text' : (choicesOf(found)[0]?.value ?? ''));
    });
  };
  const read = (ref: string) =>
    attempt('read', async () => {
      setShare(null);
      const taken = await studio.worker.readDataset(
        { ref, path, characters, ...(column === '' ? {} : { column }) },
        ({ done, total }) => setShare(total > 0 ? done / total : null),
      );
      await take(`${ref.replace(/@.*/, '')}: ${path}`, taken.text);
      onDone();
    });

  return (
    <section className="stack paste-text" aria-label="Text of a dataset">
      {/* a form of its own: Enter in the fields below must not list the files anew */}
      <form
        className="row wrap"
        onSubmit={(event) => {
          event.preventDefault();
          if (id.trim() !== '' && working === null) void open();
        }}
      >
        <input
          className="field paste-name"
          aria-label="Dataset"
          placeholder="owner/name, or its page on the Hub"
          value={id}
          // biome-ignore lint/a11y/noAutofocus: it opens on request, to be filled in.
          autoFocus
          onChange={(event) => setId(event.target.value)}
        />
        <Button type="submit" why={id.trim() === '' ? 'Name a dataset first.' : working ? 'Working…' : null}>
          {working === 'open' ? 'Opening…' : 'List files'}
        </Button>
        <Button
          variant="quiet"
          onClick={() => {
            if (working === 'read') void studio.worker.cancel();
            else onDone();
          }}
        >
          {working === 'read' ? 'Stop reading' : 'Cancel'}
        </Button>
      </form>
      {error ? <ErrorCard error={error} /> : null}
      {dataset ? (
        <div className="row wrap">
          <Select
            className="field paste-name"
            aria-label="File of the dataset"
            value={path}
            options={[
              { value: '', label: `${formatCounted(dataset.files.length, 'file')}: choose one` },
              ...dataset.files.map((file) => ({
                value: file.path,
                label: `${file.path} (${formatBytes(file.bytes)})`,
              })),
            ]}
            onChange={(chosen) => choose(dataset.ref, chosen)}
          />
          {columns && choicesOf(columns).length > 0 ? (
            <Select
              className="field"
              aria-label="Column of the file"
              value={column}
              options={choicesOf(columns)}
              onChange={setColumn}
            />
          ) : null}
        </div>
      ) : null}
      {dataset && columns ? (
        <div className="row wrap">
          <span>first</span>
          <NumberField
            className="field mono"
            label="characters to take"
            value={characters}
            min={1}
            max={20_000_000}
            onChange={setCharacters}
          />
          <span>characters</span>
          <Button why={working ? 'Working…' : busy} onClick={() => void read(dataset.ref)}>
            {working === 'read'
              ? `Reading… ${share === null ? '' : `${Math.round(100 * share)} %`}`
              : 'Add text'}
          </Button>
        </div>
      ) : null}
      {dataset ? (
        <p className="small quiet">
          Commit {dataset.commit.slice(0, 12)}
          {dataset.license === undefined ? '' : `, license ${dataset.license}`}
          {columns?.rows == null ? '' : `, ${formatCounted(columns.rows, 'row')}`}
          {working === 'columns' ? ', reading its columns…' : ''}
          {columns?.conversations != null && column === columns.conversations
            ? '. Conversations are read as each model’s own chat template writes them.'
            : ''}
        </p>
      ) : null}
    </section>
  );
}

/** Conversations first: where a file has them, its other columns are about them. */
function choicesOf({ conversations, columns }: DatasetColumns): { value: string; label: string }[] {
  const texts = columns.map((name) => ({ value: name, label: name }));
  return conversations === null
    ? texts
    : [{ value: conversations, label: `conversations (${conversations})` }, ...texts];
}

/** Takes a text, under a name. */
export type TakeText = (name: string, text: string) => Promise<void>;
