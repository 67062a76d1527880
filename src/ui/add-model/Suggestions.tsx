import { formatBytes } from '../../formats/quantity';
import { recentHubModels } from '../local/recent-models';
import type { AddTarget } from '../state/studio-state';
import { useStudioState } from '../studio-context';
import { Take } from './HitList';
import { KNOWN_BASES } from './known-bases';

interface SuggestionsProps {
  target: AddTarget;
  /** Id of the model being opened. */
  busy: string | null;
  onOpen(id: string): void;
}

/** Before anything is typed: models that were opened in this browser before, and small bases to begin with. */
export function Suggestions({ target, busy, onOpen }: SuggestionsProps) {
  const models = useStudioState((s) => s.models);
  const isClosed = (id: string) => !models.some((m) => m.title === id);
  const recent = recentHubModels().filter(isClosed);
  const bases = target === 'contributor' ? [] : KNOWN_BASES.filter(({ id }) => !recent.includes(id));
  const groups = [
    { title: 'Opened before', items: recent.map((id) => ({ id, says: '' })) },
    {
      title: 'Small bases to begin with',
      items: bases.map(({ id, bytes }) => ({ id, says: `≈ ${formatBytes(bytes)}` })),
    },
  ];
  return groups
    .filter(({ items }) => items.length > 0)
    .map(({ title, items }) => (
      <section key={title} className="hits">
        <h3>{title}</h3>
        <ul className="models" aria-label={title}>
          {items.map(({ id, says }) => (
            <li key={id} className="model">
              <div className="model-text">
                <strong className="truncate">{id}</strong>
                {says ? <span className="model-meta">{says}</span> : null}
              </div>
              <Take id={id} target={target} busy={busy} onTake={() => onOpen(id)} />
            </li>
          ))}
        </ul>
      </section>
    ));
}
