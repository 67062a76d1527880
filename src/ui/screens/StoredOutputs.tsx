import { useCallback, useEffect, useState } from 'react';
import { formatBytes } from '../../formats/quantity';
import type { CacheInfo } from '../../reports/worker';
import { Button } from '../parts/Button';
import { TrashIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { ZipButton } from '../parts/ZipButton';
import { currentRun } from '../state/runs';
import { notifyError } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** Results of earlier merges that still take space in this browser. */
export function StoredOutputs() {
  const studio = useStudio();
  const status = useStudioState((s) => currentRun(s)?.status);
  const name = useStudioState((s) =>
    currentRun(s)?.status === 'running' ? null : currentRun(s)?.destination.name,
  );
  const usable = useStudioState((s) => s.engine.info?.storage.available === true);
  const [outputs, setOutputs] = useState<CacheInfo['outputs']>([]);
  const refresh = useCallback(() => {
    if (!usable) return;
    studio.worker.cache().then(
      (info) => setOutputs(info.outputs),
      (thrown: unknown) => notifyError(studio, thrown),
    );
  }, [studio, usable]);
  const filesOf = ({ name: of, files }: CacheInfo['outputs'][number]) =>
    Promise.all(files.map(async (path) => ({ name: path, file: await studio.worker.outputFile(of, path) })));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a run that ends has left an output behind.
  useEffect(refresh, [refresh, status]);
  const others = outputs.filter((o) => o.name !== name || status !== 'done');
  if (others.length === 0) return null;
  return (
    <Section title="Kept in this browser">
      <ul className="files panel">
        {others.map((output) => (
          <li key={output.name}>
            <span className="file-name">
              <span className="mono truncate">{output.name}</span>
              {output.complete ? null : <span className="small faint">unfinished</span>}
            </span>
            <span className="numeric">{formatBytes(output.bytes)}</span>
            {output.complete ? (
              <ZipButton name={output.name} files={() => filesOf(output)} why={null} small />
            ) : null}
            <Button
              iconOnly
              tip="Delete"
              aria-label={`Delete ${output.name}`}
              onClick={() =>
                void studio.worker
                  .deleteCached('output', output.name)
                  .then(refresh, (thrown: unknown) => notifyError(studio, thrown))
              }
            >
              <TrashIcon />
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  );
}
