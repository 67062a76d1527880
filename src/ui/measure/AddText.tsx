import '../styles/measure.css';
import { useState } from 'react';
import { Button } from '../parts/Button';
import { FileButton } from '../parts/FileButton';
import { FolderIcon, PlusIcon } from '../parts/icons';
import { addTextFiles } from '../state/measure-texts';
import { useStudio } from '../studio-context';
import { DatasetText, type TakeText } from './DatasetText';

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
