import { useCallback, useEffect, useState } from 'react';
import { formatBytes } from '../../formats/quantity';
import type { CacheInfo } from '../../reports/worker';
import { Button } from '../parts/Button';
import { TrashIcon } from '../parts/icons';
import { interruptedRuns } from '../state/runs';
import {
  deleteStored,
  type StoredGroup,
  type StoredItem,
  storedGroups,
  whyNotDelete,
} from '../state/stored-items';
import { notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Everything stored, in groups, each with its size and a button to delete it. */
export function StorageList({ onChange }: { onChange(): void }) {
  const studio = useStudio();
  const interrupted = useStudioState(interruptedRuns);
  const why = useStudioState(whyNotDelete);
  const [cache, setCache] = useState<CacheInfo | null>(null);
  const look = useCallback(
    () =>
      studio.worker.cache().then(setCache, (thrown: unknown) => {
        notifyError(studio, thrown);
      }),
    [studio],
  );
  useEffect(() => void look(), [look]);
  if (!cache) return <p className="small quiet">Looking…</p>;
  const groups = storedGroups(cache, interrupted);
  const remove = async (things: readonly StoredItem[]) => {
    for (const thing of things) await deleteStored(studio, thing);
    await look();
    onChange();
  };
  if (groups.length === 0) {
    return <p className="empty">No downloads, no merged models, nothing interrupted.</p>;
  }
  return groups.map((group) => (
    <Group key={group.kind} group={group} why={why} onRemove={(things) => void remove(things)} />
  ));
}

interface GroupProps {
  group: StoredGroup;
  why: string | null;
  onRemove(things: readonly StoredItem[]): void;
}

function Group({ group, why, onRemove }: GroupProps) {
  const { title, meaning, things, bytes } = group;
  // asked twice: all of it is much to lose by one click
  const [sure, setSure] = useState(false);
  return (
    <section className="section" aria-label={title}>
      <div className="section-head">
        <h2>
          {title} <span className="quiet numeric">{formatBytes(bytes)}</span>
        </h2>
        {things.length > 1 && why === null ? (
          <button
            type="button"
            className="link"
            onBlur={() => setSure(false)}
            onClick={() => {
              if (sure) onRemove(things);
              setSure(!sure);
            }}
          >
            {sure ? `delete ${things.length}?` : 'delete all'}
          </button>
        ) : null}
      </div>
      <p className="small quiet">{meaning}</p>
      <ul className="files panel">
        {things.map((thing) => (
          <li key={thing.id}>
            <span className="file-name">
              <span className="mono truncate" title={thing.name}>
                {thing.name}
              </span>
              {thing.detail ? <span className="small faint">{thing.detail}</span> : null}
            </span>
            <span className="numeric">{thing.bytes === null ? '' : formatBytes(thing.bytes)}</span>
            <Button
              iconOnly
              tip="Delete"
              aria-label={`Delete ${thing.name}`}
              why={why}
              onClick={() => onRemove([thing])}
            >
              <TrashIcon />
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
