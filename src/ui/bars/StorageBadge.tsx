import { lazy, Suspense, useCallback, useEffect, useState } from 'react';
import { formatBytes } from '../../formats/quantity';
import { DiskIcon } from '../parts/icons';
import { PartBoundary } from '../parts/PartBoundary';
import { PopoverFrame } from '../parts/PopoverFrame';
import { type Room, readRoom } from '../state/kept-things';
import { currentRun } from '../state/runs';
import { useStudio, useStudioState } from '../studio-context';

const KeptHere = lazy(() => import('./KeptHere').then((m) => ({ default: m.KeptHere })));

/** How much this page keeps in the browser; opens to see what it is, and to delete it. */
export function StorageBadge() {
  const studio = useStudio();
  const inMemory = useStudioState((s) => s.engine.info?.storage.memoryBytes !== undefined);
  const available = useStudioState((s) => s.engine.info?.storage.available === true);
  const status = useStudioState((s) => currentRun(s)?.status);
  const models = useStudioState((s) => s.models.length);
  const [room, setRoom] = useState<Room | null>(null);
  const refresh = useCallback(() => {
    // a browser that tells nothing has no meter
    readRoom(studio).then(setRoom, () => setRoom(null));
  }, [studio]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs and opened models change what is kept.
  useEffect(refresh, [refresh, status, models]);
  if (!available || !room) return null;
  const text = `Storage: ${formatBytes(room.used)} of ${formatBytes(room.quota)}`;
  return (
    <PopoverFrame
      label="Kept in this browser"
      trigger={
        <button type="button" className="badge storage-badge" aria-label={text}>
          <DiskIcon />
          <span className="storage-used">{formatBytes(room.used)}</span>{' '}
          <span className="badge-detail">of {formatBytes(room.quota)}</span>
        </button>
      }
      className="kept-here"
      onOpenChange={refresh}
    >
      <h3>Kept in this browser</h3>
      <meter
        className="storage-meter"
        min={0}
        max={room.quota}
        high={0.9 * room.quota}
        value={room.used}
        aria-label={text}
      />
      <p className="small quiet">
        {inMemory
          ? `${formatBytes(room.used)} of the ${formatBytes(room.quota)} that fit into memory: this browser keeps no files, and these are gone when the tab is closed or reloaded.`
          : `${formatBytes(room.used)} of the ${formatBytes(room.quota)} that the browser gives this page, this page itself included.`}
      </p>
      <PartBoundary>
        <Suspense fallback={<p className="small quiet">Looking…</p>}>
          <KeptHere onChange={refresh} />
        </Suspense>
      </PartBoundary>
    </PopoverFrame>
  );
}
