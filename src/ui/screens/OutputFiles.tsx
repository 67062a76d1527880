import { useEffect, useState } from 'react';
import { namedFiles } from '../../formats/gguf-type';
import { formatCounted } from '../format/quantity';
import { saveFiles, saveText } from '../local/save-file';
import { Button } from '../parts/Button';
import { FileList } from '../parts/FileList';
import { DownloadIcon } from '../parts/icons';
import { Section } from '../parts/Section';
import { outputName } from '../state/recipe-build';
import type { RunFacts } from '../state/run-facts';
import { notifyError } from '../state/studio';
import { useFacts, useStudio } from '../studio-context';
import { ZipButton } from './ZipButton';

const GONE = 'These files were deleted; merge again to have them.';
const NO_FILES: ReadonlyMap<string, File> = new Map();
const FETCHING = 'Being fetched from this browser’s storage.';

/** The files of the last finished run with size, hash and a download each; before that, the files a merge will write. */
export function OutputFiles() {
  const run = useFacts((s) => s.run);
  const plan = useFacts((s) => s.plan.facts?.outputFiles);
  const name = useFacts((s) => s.output.name ?? outputName(s.recipe));
  const planned = plan && namedFiles(plan, name);
  if (run?.status === 'done') return <Finished run={run} />;
  return (
    <Section title="Files to be written">
      {planned ? (
        <ul className="files">
          {planned.map((file) => (
            <li key={file}>
              <span className="mono truncate">{file}</span>
            </li>
          ))}
        </ul>
      ) : (
        <p className="quiet">Known once the plan is ready.</p>
      )}
    </Section>
  );
}

function Finished({ run }: { run: RunFacts }) {
  const { destination, report } = run;
  const kept = useDownloads(run);
  const files = kept === 'gone' ? NO_FILES : kept;
  const waiting = kept === 'gone' ? GONE : FETCHING;
  const shards = new Map((report?.shards ?? []).map((s) => [s.file, s]));
  const names = [...new Set([...shards.keys(), ...run.outputFiles])];
  const inFolder = destination.kind === 'folder';
  const downloads = names.flatMap((name) => {
    const file = files.get(name);
    return file ? [{ name, file }] : [];
  });
  return (
    <Section title="Files" aside={<span className="small quiet">{formatCounted(names.length, 'file')}</span>}>
      <p className="file-where">
        {inFolder
          ? 'Saved to '
          : kept === 'gone'
            ? 'No longer kept in this browser: '
            : 'Kept in this browser as '}
        <strong>{inFolder ? `${destination.folder}/${destination.name}` : destination.name}</strong>
      </p>
      <FileList
        files={names.map((name) => {
          const shard = shards.get(name);
          const file = files.get(name);
          return { name, bytes: shard?.bytes ?? file?.size, sha256: shard?.sha256, file };
        })}
        waiting={inFolder ? null : waiting}
      />
      <div className="row wrap">
        {inFolder ? null : (
          <Button
            variant="primary"
            why={downloads.length < names.length ? waiting : null}
            onClick={() => saveFiles(downloads)}
          >
            <DownloadIcon />
            Download all
          </Button>
        )}
        {inFolder || names.length < 2 ? null : (
          <ZipButton
            name={destination.name}
            files={async () => downloads}
            why={downloads.length < names.length ? waiting : null}
          />
        )}
        <Button onClick={() => saveText(JSON.stringify(report, null, 2), `${destination.name}.report.json`)}>
          <DownloadIcon />
          Report as JSON
        </Button>
      </div>
      <p className="small quiet">
        The report holds every tensor's numbers, the hashes of inputs and outputs, and the timings.
      </p>
    </Section>
  );
}

/** The finished files of a `downloads` run, disk-backed, by name; filled as they arrive. An older run's may be gone. */
function useDownloads(run: RunFacts): ReadonlyMap<string, File> | 'gone' {
  const studio = useStudio();
  const [files, setFiles] = useState<ReadonlyMap<string, File> | 'gone'>(new Map());
  const { id, destination, outputFiles, again } = run;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the run's id stands for all of it.
  useEffect(() => {
    if (destination.kind !== 'downloads') return;
    let gone = false;
    const fetchAll = async () => {
      const found = new Map<string, File>();
      if (again && !(await studio.engine.cache()).outputs.some((o) => o.name === destination.name)) {
        if (!gone) setFiles('gone');
        return;
      }
      for (const name of outputFiles) {
        found.set(name, await studio.engine.outputFile(destination.name, name));
        if (gone) return;
      }
      setFiles(found);
    };
    fetchAll().catch((thrown: unknown) => notifyError(studio, thrown));
    return () => {
      gone = true;
    };
  }, [id, studio]);
  return files;
}
