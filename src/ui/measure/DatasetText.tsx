import { useState } from 'react';
import { formatBytes, formatCounted } from '../../formats/quantity';
import type { DatasetColumns, DatasetInfo } from '../../reports/dataset';
import { Button } from '../parts/Button';
import { ErrorCard } from '../parts/ErrorCard';
import { NumberField } from '../parts/NumberField';
import { Select } from '../parts/Select';
import { useAttempt } from '../parts/use-attempt';
import { whyBusy } from '../state/job';
import { useStudio, useStudioState } from '../studio-context';

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
    attempt('open', async () => {
      setDataset(null);
      setPath('');
      setColumns(null);
      setDataset(await studio.worker.openDataset(id));
    });
  const choose = (ref: string, chosen: string) => {
    setPath(chosen);
    setColumns(null);
    if (chosen === '') return;
    void attempt('columns', async () => {
      const found = await studio.worker.datasetColumns(ref, chosen);
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
