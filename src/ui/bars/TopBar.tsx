import { type ComponentProps, lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { formatBytes } from '../../formats/quantity';
import type { WorkerInfo } from '../../reports/worker';
import {
  ActionButton,
  DiskIcon,
  Mark,
  MoonIcon,
  RedoIcon,
  SunIcon,
  SystemThemeIcon,
  UndoIcon,
} from '../parts/Button';
import { Segmented, Select } from '../parts/fields';
import { Message, PartBoundary } from '../parts/Message';
import { PopoverFrame } from '../parts/PopoverFrame';
import { Fact } from '../parts/Section';
import { TabLabel } from '../parts/TabList';
import { ACTIONS, keysText } from '../state/actions';
import { engineSummary } from '../state/job';
import { type Room, readRoom } from '../state/stored-items';
import { type BackendChoice, editSlice, setView, type Theme } from '../state/studio';
import { PLACES, type Place, placeOf, type Tab } from '../state/tabs';
import { useNarrow, useStudio, useStudioState } from '../studio-context';

/** Name of the app, its places, the engine, the theme. */
export function TopBar() {
  const inMerge = useStudioState((s) => placeOf(s.view.tab) === 'merge');
  const narrow = useNarrow();
  return (
    <header className="row loose topbar">
      <h1 className="row">
        <Mark />
        <span className="brand-name">Amalgam</span>
      </h1>
      <Places />
      <span className="spacer" />
      {inMerge ? (
        <span className="row">
          <IconButton icon={UndoIcon} of={ACTIONS.undo} variant="quiet" />
          <IconButton icon={RedoIcon} of={ACTIONS.redo} variant="quiet" />
        </span>
      ) : null}
      <EngineBadge />
      <StorageBadge />
      {/* on narrow screens it is among the saved recipes */}
      {inMerge && !narrow ? (
        <ActionButton of={ACTIONS.share} tip={ACTIONS.share.name}>
          Share
        </ActionButton>
      ) : null}
      {narrow ? null : <IconButton of={ACTIONS.palette}>?</IconButton>}
      <ThemeButton />
    </header>
  );
}

/** The places of the studio; Merge comes back with the tab that it was left with. */
function Places() {
  const studio = useStudio();
  const narrow = useNarrow();
  const tab = useStudioState((s) => s.view.tab);
  const place = placeOf(tab);
  const left = useRef<Tab>('layers');
  if (place === 'merge') left.current = tab;
  const go = (id: Place) => {
    if (id !== place) setView(studio, { tab: id === 'merge' ? left.current : id, selected: null });
  };
  if (narrow) {
    return (
      <Select
        className="select places-select"
        aria-label="Place"
        value={place}
        options={PLACES.map(({ id, text }) => ({ value: id, label: text }))}
        onChange={go}
      />
    );
  }
  return (
    <nav className="places" aria-label="Places">
      {PLACES.map(({ id, text }) => (
        <a
          key={id}
          href={`#tab=${id === 'merge' ? 'layers' : id}`}
          className="row nowrap place-link"
          aria-current={id === place ? 'page' : undefined}
          onClick={(event) => {
            // with a key it opens in another tab of the browser
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            go(id);
          }}
        >
          <TabLabel text={text} />
        </a>
      ))}
    </nav>
  );
}

/** A button of an action, by its icon. */
function IconButton({
  of,
  label = of.name,
  ...rest
}: ComponentProps<typeof ActionButton> & { label?: string }) {
  const keys = keysText(of);
  return (
    <ActionButton of={of} iconOnly tip={keys ? `${label} (${keys})` : label} aria-label={label} {...rest} />
  );
}

const THEMES: Readonly<Record<Theme, [says: string, Icon: () => React.JSX.Element]>> = {
  system: ['Theme: system', SystemThemeIcon],
  light: ['Theme: light', SunIcon],
  dark: ['Theme: dark', MoonIcon],
};

function ThemeButton() {
  const [says, Icon] = THEMES[useStudioState((s) => s.view.theme)];
  return <IconButton icon={Icon} of={ACTIONS.theme} label={says} />;
}

const StorageList = lazy(() => import('./StorageList').then((m) => ({ default: m.StorageList })));

/** Bytes that this page stores in the browser; opens the list of them, to delete. */
function StorageBadge() {
  const studio = useStudio();
  const inMemory = useStudioState((s) => s.engine.info?.storage.memoryBytes !== undefined);
  const available = useStudioState((s) => s.engine.info?.storage.available === true);
  const job = useStudioState((s) => s.job?.kind);
  const models = useStudioState((s) => s.models.length);
  const [room, setRoom] = useState<Room | null>(null);
  const refresh = useCallback(() => {
    // no meter without the browser's estimate
    readRoom(studio).then(setRoom, () => setRoom(null));
  }, [studio]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: jobs and opened models change the storage.
  useEffect(refresh, [refresh, job, models]);
  if (!available || !room) return null;
  const text = `Storage: ${formatBytes(room.used)} of ${formatBytes(room.quota)}`;
  return (
    <PopoverFrame
      label="Kept in this browser"
      trigger={
        <button type="button" className="button rigid badge storage-badge" aria-label={text}>
          <DiskIcon />
          <span className="storage-used">{formatBytes(room.used)}</span>{' '}
          <span className="badge-detail">of {formatBytes(room.quota)}</span>
        </button>
      }
      className="storage-list"
      onOpenChange={refresh}
    >
      <h3>Kept in this browser</h3>
      <p className="small quiet">
        {inMemory
          ? `${formatBytes(room.used)} of the ${formatBytes(room.quota)} that fit into memory: this browser keeps no files, and these are gone when the tab is closed or reloaded.`
          : `${formatBytes(room.used)} of the ${formatBytes(room.quota)} that the browser gives this page, this page itself included. ${room.isKept ? 'It keeps them until you delete them.' : 'It may delete them when the disk runs short.'}`}
      </p>
      <PartBoundary>
        <Suspense fallback={<p className="small quiet">Looking…</p>}>
          <StorageList onChange={refresh} />
        </Suspense>
      </PartBoundary>
    </PopoverFrame>
  );
}

/** Which engine computes, with its limits and why; opens to choose another. */
function EngineBadge() {
  const engine = useStudioState((s) => s.engine);
  const summary = engineSummary(engine);
  return (
    <PopoverFrame
      label="Engine"
      trigger={
        <button type="button" className="button rigid badge" data-tone={summary.tone}>
          <span className="badge-dot" aria-hidden="true" />
          <span>
            {summary.kind}
            {summary.detail ? <span className="badge-detail"> · {summary.detail}</span> : null}
          </span>
        </button>
      }
    >
      {engine.info ? <EngineDetail info={engine.info} choice={engine.choice} /> : null}
      {engine.error ? <Message tone="error" title={engine.error.message} hint={engine.error.hint} /> : null}
      {summary.notes.map((note) => (
        <Message key={note} tone="warning" title={note} />
      ))}
    </PopoverFrame>
  );
}

function EngineDetail({ info, choice }: { info: WorkerInfo; choice: BackendChoice }) {
  const studio = useStudio();
  const { webgpu, cpu } = info;
  const noGpu = webgpu.available ? null : (webgpu.why ?? 'This browser has no WebGPU.');
  return (
    <>
      <Segmented<BackendChoice>
        label="Engine"
        value={choice}
        options={[
          { value: 'auto', label: 'Auto' },
          { value: 'webgpu', label: 'WebGPU', why: noGpu },
          { value: 'cpu', label: 'CPU' },
        ]}
        onChange={(next) => editSlice(studio, 'engine', { choice: next })}
      />
      <dl className="stack facts">
        <Fact label="GPU adapter" value={webgpu.available ? webgpu.adapter : 'none'} />
        <Fact label="CPU engine" value={cpu.adapter} />
        <Fact label="Amalgam" value={info.version} />
      </dl>
    </>
  );
}
