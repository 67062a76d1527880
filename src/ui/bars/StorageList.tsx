import { useState } from 'react';
import { formatBytes } from '../../formats/quantity';
import type { CacheInfo } from '../../reports/worker';
import { Button, LinkButton, TrashIcon } from '../parts/Button';
import { ZipButton } from '../parts/SavedFiles';
import { interruptedRuns } from '../state/runs';
import {
  deleteStored,
  type StoredGroup,
  type StoredItem,
  storedGroups,
  whyNotDelete,
} from '../state/stored-items';
import { useAnswer, useStudio, useStudioState } from '../studio-context';

/** Everything stored, in groups, each with its size and a button to delete it; outputs can be downloaded. */
export function StorageList({ onChange }: { onChange(): void }) {
  const studio = useStudio();
  const interrupted = useStudioState(interruptedRuns);
  const job = useStudioState((s) => s.job?.kind);
  const why = useStudioState(whyNotDelete);
  const [cache, look] = useAnswer<CacheInfo | null>(null, (worker) => worker.cache(), [job]);
  const remove = async (items: readonly StoredItem[]) => {
    for (const item of items) await deleteStored(studio, item);
    look();
    onChange();
  };
  const groups = cache ? storedGroups(cache, interrupted) : [];
  if (groups.length === 0) {
    return cache ? (
      <p className="empty">No downloads, no merged models, nothing interrupted.</p>
    ) : (
      <p className="small quiet">Looking…</p>
    );
  }
  return groups.map((group) => (
    <Group key={group.kind} group={group} why={why} onRemove={(items) => void remove(items)} />
  ));
}

interface GroupProps {
  group: StoredGroup;
  why: string | null;
  onRemove(items: readonly StoredItem[]): void;
}

function Group({ group, why, onRemove }: GroupProps) {
  const studio = useStudio();
  const { title, meaning, items, bytes } = group;
  // asked twice: all of it is much to lose by one click
  const [sure, setSure] = useState(false);
  const filesOf = ({ name, files = [] }: StoredItem) =>
    Promise.all(
      files.map(async (path) => ({ name: path, file: await studio.worker.outputFile(name, path) })),
    );
  return (
    <section className="stack section" aria-label={title}>
      <div className="row spread section-head">
        <h2 className="label">
          {title} <span className="quiet numeric">{formatBytes(bytes)}</span>
        </h2>
        {items.length > 1 && why === null ? (
          <LinkButton
            onBlur={() => setSure(false)}
            onClick={() => {
              if (sure) onRemove(items);
              setSure(!sure);
            }}
          >
            {sure ? `delete ${items.length}?` : 'delete all'}
          </LinkButton>
        ) : null}
      </div>
      <p className="small quiet">{meaning}</p>
      <ul className="files ruled panel">
        {items.map((item) => (
          <li key={item.id} className="row spread loose small">
            <span className="grid grow">
              <span className="mono small truncate" title={item.name}>
                {item.name}
              </span>
              {item.detail ? <span className="small faint">{item.detail}</span> : null}
            </span>
            <span className="numeric">{item.bytes === null ? '' : formatBytes(item.bytes)}</span>
            {item.files ? <ZipButton name={item.name} files={() => filesOf(item)} why={null} small /> : null}
            <Button
              icon={TrashIcon}
              tip="Delete"
              aria-label={`Delete ${item.name}`}
              why={why}
              onClick={() => onRemove([item])}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
