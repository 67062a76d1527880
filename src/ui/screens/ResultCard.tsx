import { saveFile } from '../local/local-files';
import { useTableRows } from '../measure/use-table-rows';
import { Button, CloseIcon, LinkButton } from '../parts/Button';
import { ZipButton } from '../parts/SavedFiles';
import { tryMerge, whyNotWrite } from '../state/generation';
import { isAtWork } from '../state/job';
import { measure, openMeasure, whyNotMeasure } from '../state/measure';
import { conclusion } from '../state/measure-conclusion';
import { measureTable, missingCells, type TableRow } from '../state/measure-table';
import { isOfImages } from '../state/recipe-validation';
import type { FinishedRun } from '../state/runs';
import { noticed, setView } from '../state/studio';
import { useStudio, useStudioState } from '../studio-context';

/** The merge that has just ended: whether it is better, and what can be done with it. */
export function ResultCard({ run, onClose }: { run: FinishedRun; onClose(): void }) {
  const studio = useStudio();
  const whyNotTry = useStudioState(whyNotWrite);
  const isImage = useStudioState((s) => isOfImages(s.recipe, s.models));
  const { destination, outputFiles } = run;
  const inFolder = destination.kind === 'folder';
  const fileOf = (name: string) => studio.worker.outputFile(destination.name, name);
  const gguf = inFolder ? undefined : outputFiles.find((name) => name.endsWith('.gguf'));
  const showFiles = (filesAt: 'gguf' | 'push' | null) => setView(studio, { tab: 'files', filesAt });
  const saveGguf = (name: string) => noticed(studio, async () => saveFile(await fileOf(name), name));
  return (
    <section className="row wrap apart strip" aria-label="Result of the merge">
      {isImage ? (
        <p role="status">
          <strong>Merged.</strong> Models of images cannot be run here: try it where you draw.
        </p>
      ) : (
        <IsItBetter run={run} />
      )}
      <div className="row tight">
        {inFolder ? (
          <Button onClick={() => showFiles(null)}>Show files</Button>
        ) : (
          <ZipButton
            name={destination.name}
            label="Save files"
            files={() => Promise.all(outputFiles.map(async (name) => ({ name, file: await fileOf(name) })))}
            why={null}
          />
        )}
        {isImage ? null : (
          <Button
            tip={gguf ? `Saves ${gguf}` : 'Choose a GGUF type, then merge again'}
            onClick={() => (gguf ? void saveGguf(gguf) : showFiles('gguf'))}
          >
            {gguf ? 'GGUF' : 'GGUF…'}
          </Button>
        )}
        <Button onClick={() => showFiles('push')}>Push…</Button>
        <Button
          tip="Base and merge answer the same prompt"
          why={whyNotTry}
          onClick={() => void tryMerge(studio)}
        >
          Try
        </Button>
        <Button icon={CloseIcon} variant="quiet" aria-label="Close the result" onClick={onClose} />
      </div>
    </section>
  );
}

/** Whether it is better than its base and its contributors, or what measures that. */
function IsItBetter({ run }: { run: FinishedRun }) {
  const studio = useStudio();
  const tab = useStudioState((s) => s.view.tab);
  const slice = useStudioState((s) => s.measure);
  const why = useStudioState(whyNotMeasure);
  const atWork = useStudioState((s) => isAtWork(s, 'evaluation'));
  const all = useTableRows();
  const own = all.find((row) => row.run?.id === run.id);
  const rows = all.filter((row) => row.group === 'models' || row === own);
  // the verdict is that of the whole table: what Measure says
  const table = measureTable(all, slice);
  const said = own ? conclusion(table, own.id) : null;
  const begin = async () => {
    await openMeasure(studio);
    await measure(studio, rows);
  };
  // Measure says it itself
  if (tab === 'measure') return <p />;
  const isOwn = ({ row }: TableRow) => rows.includes(row);
  const isWhole = missingCells({ ...table, rows: table.rows.filter(isOwn) }).length === 0;
  const ask = atWork ? 'Measuring…' : said ? 'Measure the rest' : 'Measure it beside its models';
  return (
    <p role="status">
      <strong>{said?.lead ?? 'Is it better?'}</strong>
      {said?.rest}{' '}
      {said && (isWhole || atWork) ? null : (
        <LinkButton disabled={why !== null} title={why ?? undefined} onClick={() => void begin()}>
          {ask}
        </LinkButton>
      )}
    </p>
  );
}
