import { useEffect, useState } from 'react';
import { keptFolders } from '../local/folder-handles';
import { Button } from '../parts/Button';
import { shortName } from '../state/built-recipe';
import { useStudioState } from '../studio-context';

/** Folders that were opened before and are not open now, each one click away. */
export function KeptFolders({ onOpen }: { onOpen(model: string): void }) {
  const models = useStudioState((s) => s.models);
  const [kept, setKept] = useState<Awaited<ReturnType<typeof keptFolders>>>([]);
  useEffect(() => {
    // a browser that keeps nothing has none
    keptFolders().then(setKept, () => setKept([]));
  }, []);
  const closed = kept.filter((folder) => !folder.models.every((name) => models.some((m) => m.ref === name)));
  if (closed.length === 0) return null;
  return (
    <section className="hits">
      <h3>Opened before</h3>
      <ul className="models" aria-label="Folders opened before">
        {closed.map(({ path, models: inside }) => (
          <li key={path} className="model">
            <div className="model-text">
              <strong className="truncate">{path}</strong>
              {inside.length > 1 || inside[0] !== path ? (
                <span className="model-meta">{inside.map(shortName).join(', ')}</span>
              ) : null}
            </div>
            <Button aria-label={`Open ${path}`} onClick={() => onOpen(inside[0]!)}>
              Open
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
